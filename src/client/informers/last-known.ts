/**
 * Last known objects of the API server, on the host's disk. A host that starts while no API server is reachable
 * continues with these objects. To reduce wear of flash memory, each set of objects is read once, and written in
 * batches and only if it has changed.
 */
import type { KubeObject } from '../../api/meta/object.ts';
import { CodedError, ignore, messageOf } from '../../base/errors.ts';
import { parseJson } from '../../base/json/json.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { SealedFiles } from './sealed-files-port.ts';

/** Delay and minimum interval of writes after a change. */
export type Pace = 'soon' | 'calm';

export interface LastKnown {
  /** Objects of a set; undefined if the set does not exist or cannot be used. The latter is logged. Never rejects. */
  read(set: string): Promise<readonly KubeObject[] | undefined>;
  /** Schedules a write of a changed set. `content`: returns the objects when the set is written. */
  keep(set: string, content: () => readonly unknown[], pace: Pace): void;
  /** Writes pending sets and ignores later changes. */
  stop(): Promise<void>;
}

export interface LastKnownOptions {
  readonly files: SealedFiles;
  readonly clock: Clock;
  readonly log: Log;
}

const PACES: Readonly<Record<Pace, { readonly delayMs: number; readonly intervalMs: number }>> = {
  soon: { delayMs: 1_000, intervalMs: 5_000 },
  // Pace for sets that change with every pod, such as endpoints and policies.
  calm: { delayMs: 5_000, intervalMs: 60_000 },
};
/** Version of the file format. */
const FORM = 1;
/** Maximum number of objects in a set. Ten thousand Services with their endpoints need fewer. */
const MAX_OBJECTS = 50_000;
const MAX_BYTES = 32 * 1024 * 1024;
/** Objects that are processed in one turn of the event loop. */
const BATCH = 200;

interface Waiting {
  content: (() => readonly unknown[]) | undefined;
  pace: Pace;
  timer: Timer | undefined;
  writing: Promise<void> | undefined;
  writtenAtMs: number;
  /** Message of the last failure, so that the same failure is logged only once. */
  problem: string | undefined;
}

export function createLastKnown(options: LastKnownOptions): LastKnown {
  return new SealedLastKnown(options);
}

class SealedLastKnown implements LastKnown {
  readonly #options: LastKnownOptions;
  readonly #sets = new Map<string, Waiting>();
  #stopped = false;

  constructor(options: LastKnownOptions) {
    this.#options = options;
  }

  async read(set: string): Promise<readonly KubeObject[] | undefined> {
    try {
      const bytes = await this.#options.files.read(set);
      return bytes === undefined ? undefined : await this.#decode(bytes);
    } catch (error) {
      this.#options.log.warn('last known state ignored', { set, error: messageOf(error) });
      return undefined;
    }
  }

  keep(set: string, content: () => readonly unknown[], pace: Pace): void {
    if (this.#stopped) return;
    const waiting = this.#sets.get(set) ?? {
      content,
      pace,
      timer: undefined,
      writing: undefined,
      problem: undefined,
      writtenAtMs: Number.NEGATIVE_INFINITY,
    };
    this.#sets.set(set, waiting);
    waiting.content = content;
    waiting.pace = pace;
    this.#arm(set, waiting);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(
      [...this.#sets].map(async ([set, waiting]) => {
        waiting.timer?.cancel();
        await waiting.writing;
        await this.#write(set, waiting);
      }),
    );
  }

  #arm(set: string, waiting: Waiting): void {
    if (waiting.timer !== undefined || waiting.writing !== undefined || waiting.content === undefined) return;
    const { clock } = this.#options;
    const { delayMs, intervalMs } = PACES[waiting.pace];
    const dueMs = Math.max(delayMs, waiting.writtenAtMs + intervalMs - clock.monotonicMs());
    waiting.timer = clock.setTimer(dueMs, () => {
      waiting.timer = undefined;
      waiting.writing = this.#write(set, waiting).finally(() => {
        waiting.writing = undefined;
        if (!this.#stopped) this.#arm(set, waiting);
      });
    });
  }

  async #write(set: string, waiting: Waiting): Promise<void> {
    const { files, clock, log } = this.#options;
    const { content } = waiting;
    if (content === undefined) return;
    waiting.content = undefined;
    try {
      if (await files.write(set, await this.#encode(content()))) waiting.writtenAtMs = clock.monotonicMs();
      waiting.problem = undefined;
    } catch (error) {
      waiting.writtenAtMs = clock.monotonicMs();
      const problem = messageOf(error);
      if (problem !== waiting.problem) log.warn('last known state not written', { set, error: problem });
      waiting.problem = problem;
      // If a set is too large, the stored set is removed, because it would become arbitrarily old.
      if (error instanceof CodedError && error.code === 'too-large')
        await files.remove(set).catch(ignore('the failed write is logged, and is repeated'));
    }
  }

  async #encode(objects: readonly unknown[]): Promise<Uint8Array> {
    const tooLarge = (what: string): CodedError =>
      new CodedError('too-large', `${what}; without an API server this host starts without them`);
    if (objects.length > MAX_OBJECTS) throw tooLarge(`${objects.length} objects are more than ${MAX_OBJECTS}`);
    const parts: Uint8Array[] = [Buffer.from(`${JSON.stringify({ form: FORM, objects: objects.length })}\n`)];
    let size = 0;
    for (const [index, object] of objects.entries()) {
      if (index > 0 && index % BATCH === 0) await this.#turn();
      const line = Buffer.from(`${JSON.stringify(object)}\n`);
      size += line.length;
      if (size > MAX_BYTES) throw tooLarge(`objects of more than ${MAX_BYTES} bytes`);
      parts.push(line);
    }
    return Buffer.concat(parts);
  }

  async #decode(bytes: Uint8Array): Promise<KubeObject[]> {
    const [head = '', ...lines] = Buffer.from(bytes).toString('utf8').trimEnd().split('\n');
    const { form, objects: count } = parseJson(head) as { form?: unknown; objects?: unknown };
    if (form !== FORM) throw new Error(`format version ${String(form)} is not supported`);
    if (count !== lines.length) throw new Error(`${lines.length} objects instead of ${String(count)}`);
    const objects: KubeObject[] = [];
    for (const [index, line] of lines.entries()) {
      if (index > 0 && index % BATCH === 0) await this.#turn();
      objects.push(parseJson(line) as KubeObject);
    }
    return objects;
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#options.clock.setTimer(0, resolve);
    });
  }
}

/** The object without metadata that changes at every write, even if the content is the same. */
export function withoutVersions<T extends KubeObject>(object: T): T {
  const { managedFields: _, resourceVersion: __, ...metadata } = object.metadata ?? {};
  return { ...object, metadata };
}
