/** Host with in-memory files and component. A file that begins with `bad` does not start. */
import { createHash } from 'node:crypto';
import type { HostState } from '../../../src/openshift/revisions/core/index.ts';
import type { Inputs, OperandFiles, OperandHealth, OperandProcess } from '../../../src/openshift/revisions/port.ts';

const CONFIG = 'master/master-config.yaml';
const sha = (text: string): string => createHash('sha256').update(text).digest('hex');

export class MemoryHost implements OperandFiles, OperandProcess {
  config: string;
  certificate = 'certificate';
  state: HostState = { current: 0, revisions: [] };
  readonly directories = new Map<
    number,
    { readonly inputs: Inputs; readonly config: string; readonly overlay: string }
  >();
  /** Files that the component reads. */
  active = { config: '', certificate: '', overlay: '' };
  /** Files that the component read at its start. */
  running = { config: '', overlay: '' };
  readonly starts: string[] = [];
  readonly #watchers = new Set<() => void>();
  /** Called at each restart of the component, which waits until the function resolves. */
  onRestart: () => Promise<void> = async () => {};

  constructor(config: string) {
    this.config = config;
  }

  readState = async (): Promise<HostState> => this.state;
  writeState = async (state: HostState): Promise<void> => {
    this.state = structuredClone(state);
  };

  inputs = async (): Promise<Inputs> => ({
    digest: sha(`${this.config}\0${this.certificate}`),
    restartDigest: sha(this.config),
    files: new Map([
      [CONFIG, sha(this.config)],
      ['master/server.crt', sha(this.certificate)],
    ]),
  });

  keep = async (revision: number, overlay: string): Promise<Inputs> => {
    const inputs = await this.inputs();
    this.directories.set(revision, { inputs, config: this.config, overlay });
    return inputs;
  };

  kept = async (revision: number): Promise<Inputs | undefined> => this.directories.get(revision)?.inputs;

  apply = async (revision: number): Promise<void> => {
    const { config, overlay } = this.directories.get(revision) ?? { config: 'bad: no directory', overlay: '' };
    this.active = { ...this.active, config, overlay };
  };

  follow = async (): Promise<void> => {
    this.active = { ...this.active, certificate: this.certificate };
  };

  remove = async (revision: number): Promise<void> => void this.directories.delete(revision);
  watch = (changed: () => void): (() => void) => {
    this.#watchers.add(changed);
    return () => this.#watchers.delete(changed);
  };

  /** Writes the file and notifies the watchers. An assignment to `config` is found only by polling. */
  edit(config: string): void {
    this.config = config;
    for (const changed of this.#watchers) changed();
  }

  health = async (): Promise<OperandHealth> =>
    this.running.config.startsWith('bad') || this.running.overlay.includes('bad')
      ? { state: 'crashing', message: `api ended 2 times; ${this.running.config}` }
      : { state: 'healthy', message: '' };

  restart = async (): Promise<void> => {
    await this.onRestart();
    this.boot();
  };

  /** Starts the component with the current files. */
  boot(): void {
    this.running = { config: this.active.config, overlay: this.active.overlay };
    this.starts.push(this.running.config);
  }
}
