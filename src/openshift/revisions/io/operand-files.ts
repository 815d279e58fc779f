/**
 * Input files of control-plane components. `<resources>/<operand>-pod-<N>` contains the copy for revision N, and
 * `<active>/<directory>` contains the files that the component reads. Files are replaced atomically.
 */

import { chmod, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { decodeJson, fields, list, map, number, object, optional, own, text as string } from '../../../base/decode.ts';
import { CodedError, ifMissing } from '../../../base/errors.ts';
import type { WatchPath } from '../../../base/files/path-watch-port.ts';
import { sha256Hex } from '../../../wire/digest.ts';
import type { HostState, Inputs, OperandFiles } from '../port.ts';
import { type Input, KeepingReader, plainReader, readTree } from './input-files.ts';

const NO_STATE: HostState = { current: 0, revisions: [] };
const STATE = 'state.json';
const INPUTS = 'inputs.json';
const TEMPORARY = '.revision-new';

export interface OperandDirectory {
  /** Directory to which administrators and the host process write. */
  readonly live: string;
  /** Name of the sub-directory in each revision and in `active`. */
  readonly name: string;
  /** Whether the component uses this file. Other components may share the directory. */
  readonly owns: (file: string) => boolean;
}

export type Effect = 'restart' | 'reload';

export interface OperandFilesOptions {
  readonly operand: string;
  /** Directory that contains a directory for each revision. */
  readonly resources: string;
  /** Directory whose sub-directories the component reads. */
  readonly active: string;
  readonly directories: readonly OperandDirectory[];
  /** Path of the static pod's manifest. */
  readonly manifest: string;
  /** Release of this executable. Manifests written by another release are never applied. */
  readonly release: string;
  /** Access to the executable named in the manifest. The executable is not part of a revision. */
  readonly executable: {
    /** Returns the manifest with the path of this release's executable. */
    own: (manifest: Buffer) => Buffer;
    /** Returns the manifest in a form for comparisons that is the same for all executables. */
    neutral: (manifest: Buffer) => Buffer;
  };
  /**
   * Selects the files that are part of a revision, and the effect of a change of each. Names are `<directory>/<path>`.
   */
  readonly classify: (files: ReadonlyMap<string, Buffer>) => ReadonlyMap<string, Effect>;
  /** Returns the content of a file with the cluster's settings (`overlay`) applied. */
  readonly overlaid: (name: string, text: string, overlay: string) => string;
  readonly watchPath: WatchPath;
}

const POD = 'pod.yaml';
/** Sub-directory of a revision with the files as they were before the cluster's settings were applied. */
const ORIGINALS = 'originals';

export function createOperandFiles(options: OperandFilesOptions): OperandFiles {
  const { operand, resources, active, directories, manifest, release, executable, classify, overlaid } = options;
  const { watchPath } = options;
  const directoryOf = (revision: number): string => join(resources, `${operand}-pod-${revision}`);
  const stateFile = join(resources, `${operand}-${STATE}`);

  // The reader caches contents, because the files are checked every few seconds but rarely change.
  const reader = new KeepingReader();
  let last: ReadonlyMap<string, Input> = new Map();

  async function live(): Promise<ReadonlyMap<string, Input>> {
    const found = new Map<string, Input>();
    for (const { live: path, name, owns } of directories) {
      for (const [file, input] of await readTree(path, skips, reader))
        if (owns(file)) found.set(`${name}/${file}`, input);
    }
    const pod = await reader.read(manifest);
    if (pod !== undefined) found.set(POD, pod);
    if (!sameFiles(found, last)) last = found;
    return last;
  }

  const effectsOf = remembered((files) => {
    const effects = new Map(classify(new Map([...files].map(([name, { content }]) => [name, content]))));
    // A changed manifest counts as reload, because the kubelet restarts the pod itself.
    if (files.has(POD)) effects.set(POD, 'reload');
    return effects;
  });
  const inputsOf = remembered((files) => {
    const pod = files.get(POD);
    const compared = new Map(files);
    if (pod !== undefined) compared.set(POD, { ...pod, content: executable.neutral(pod.content) });
    return digestsOf(compared, effectsOf(files));
  });

  async function applyManifest(directory: string): Promise<void> {
    const pod = await plainReader.read(join(directory, POD));
    const present = await plainReader.read(manifest);
    if (pod === undefined || present === undefined || (await releaseOf(directory)) !== release) return;
    const content = executable.own(pod.content);
    if (!present.content.equals(content)) await replace(manifest, content, pod.mode);
  }

  return {
    readState: () => keptState(resources, operand),
    writeState: async (state) => {
      await mkdir(resources, { recursive: true, mode: 0o700 });
      await replace(stateFile, Buffer.from(`${JSON.stringify(state)}\n`), 0o600);
    },
    inputs: async () => inputsOf(await live()),
    async keep(revision, overlay) {
      const files = await live();
      const inputs = inputsOf(files);
      const directory = directoryOf(revision);
      await rm(directory, { recursive: true, force: true });
      await mkdir(directory, { recursive: true, mode: 0o700 });
      // Write the files concurrently, so that the file system combines the flushes.
      await Promise.all(
        [...files].map(async ([name, { content, mode }]) => {
          const text = content.toString('utf8');
          const laid = Buffer.from(overlaid(name, text, overlay));
          const isLaid = name !== POD && !laid.equals(Buffer.from(text));
          await replace(join(directory, name), isLaid ? laid : content, mode);
          if (isLaid) await replace(join(directory, ORIGINALS, name), content, mode);
        }),
      );
      await replace(join(directory, INPUTS), Buffer.from(JSON.stringify(serialised(inputs, release))), 0o600);
      return inputs;
    },
    async kept(revision) {
      const text = await readFile(join(directoryOf(revision), INPUTS), 'utf8').catch(ifMissing(undefined));
      return text === undefined ? undefined : deserialised(text);
    },
    async apply(revision) {
      const directory = directoryOf(revision);
      for (const { name, owns } of directories) {
        const wanted = await readTree(join(directory, name), skips);
        if (wanted.size === 0) throw new CodedError('revision-missing', `${directory}: has no files of ${name}`);
        await makeEqual(join(active, name), wanted, owns);
      }
      await applyManifest(directory);
    },
    async follow() {
      const files = await live();
      const effects = effectsOf(files);
      for (const { name } of directories) await mkdir(join(active, name), { recursive: true, mode: 0o700 });
      for (const [name, { content, mode }] of files) {
        if (name === POD || effects.get(name) === 'restart') continue;
        const present = await reader.read(join(active, name));
        if (present?.content.equals(content) !== true) await replace(join(active, name), content, mode);
      }
    },
    remove: (revision) => rm(directoryOf(revision), { recursive: true, force: true }),
    watch(listener) {
      const watchers = [...directories.map((each) => each.live), dirname(manifest)].flatMap((path) => {
        try {
          return [watchPath(path, listener)];
        } catch {
          return [];
        }
      });
      return () => {
        for (const each of watchers) each.close();
      };
    },
  };
}

/** Files of a stored revision before settings were applied, by `<directory>/<path>`; undefined if it is not stored. */
export async function keptFiles(
  resources: string,
  operand: string,
  revision: number,
): Promise<Map<string, Input> | undefined> {
  const directory = join(resources, `${operand}-pod-${revision}`);
  const all = await readTree(directory, skips);
  if (all.size === 0) return undefined;
  const prefix = `${ORIGINALS}/`;
  const files = new Map([...all].filter(([name]) => name !== POD && !name.startsWith(prefix)));
  for (const [name, input] of all) if (name.startsWith(prefix)) files.set(name.slice(prefix.length), input);
  return files;
}

/** State of the component's revisions on this host's disk. Throws if it exists and cannot be read. */
export async function keptState(resources: string, operand: string): Promise<HostState> {
  const text = await readFile(join(resources, `${operand}-${STATE}`), 'utf8').catch(ifMissing(undefined));
  return text === undefined ? NO_STATE : parseState(text);
}

/** Returns `make` with a cache by identity of the map: unchanged files are passed as the same map. */
function remembered<T>(make: (files: ReadonlyMap<string, Input>) => T): (files: ReadonlyMap<string, Input>) => T {
  const known = new WeakMap<ReadonlyMap<string, Input>, { readonly made: T }>();
  return (files) => {
    const { made } = known.get(files) ?? { made: make(files) };
    known.set(files, { made });
    return made;
  };
}

function digestsOf(files: ReadonlyMap<string, Input>, effects: ReadonlyMap<string, Effect>): Inputs {
  const counted = [...effects].sort(([left], [right]) => (left < right ? -1 : 1));
  const digests = new Map(counted.map(([name]) => [name, sha256Hex(files.get(name)?.content ?? Buffer.alloc(0))]));
  const digest = (wanted: (effect: Effect) => boolean): string =>
    sha256Hex(
      counted
        .filter(([, effect]) => wanted(effect))
        .map(([name]) => `${name}\0${digests.get(name)}\n`)
        .join(''),
    );
  return { digest: digest(() => true), restartDigest: digest((effect) => effect === 'restart'), files: digests };
}

const sameFiles = (left: ReadonlyMap<string, Input>, right: ReadonlyMap<string, Input>): boolean =>
  left.size === right.size && [...left].every(([name, input]) => right.get(name) === input);

const skips = (name: string): boolean =>
  name.startsWith('.') || name.endsWith('.new') || name.endsWith(TEMPORARY) || name === INPUTS;

/**
 * Makes the files of the directory that the component owns equal to `wanted`: writes changed ones and deletes others.
 */
async function makeEqual(
  directory: string,
  wanted: ReadonlyMap<string, Input>,
  owns: (file: string) => boolean,
): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const present = await readTree(directory, skips);
  await Promise.all(
    [...wanted].map(async ([name, { content, mode }]) => {
      const before = present.get(name);
      if (before?.content.equals(content) !== true || before.mode !== mode)
        await replace(join(directory, name), content, mode);
    }),
  );
  for (const name of present.keys()) {
    if (owns(name) && !wanted.has(name)) await rm(join(directory, name), { force: true });
  }
}

/** Replaces the file atomically and durably. */
export async function replace(path: string, content: Buffer, mode: number): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}${TEMPORARY}`;
  const file = await open(temporary, 'w', mode);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  // Set the mode explicitly, because the umask of the process restricts the mode given to open.
  await chmod(temporary, mode);
  await rename(temporary, path);
}

const RELEASE = object({ release: optional(string) });
const INPUTS_RECORD = own<Omit<Inputs, 'files'> & { readonly files: Readonly<Record<string, string>> }>(
  object({ files: map(string) }),
);
const HOST_STATE = own<HostState>(object({ current: number, revisions: list(fields) }));

/** Release that wrote a revision; undefined if the revision was written by a release that did not record itself. */
async function releaseOf(directory: string): Promise<string | undefined> {
  const text = await readFile(join(directory, INPUTS), 'utf8').catch(ifMissing('{}'));
  try {
    return decodeJson(RELEASE, text, INPUTS).release;
  } catch {
    return undefined;
  }
}

const serialised = ({ digest, restartDigest, files }: Inputs, release: string): object => ({
  release,
  digest,
  restartDigest,
  files: Object.fromEntries(files),
});

function deserialised(text: string): Inputs | undefined {
  try {
    const { digest, restartDigest, files } = decodeJson(INPUTS_RECORD, text, INPUTS);
    return { digest, restartDigest, files: new Map(Object.entries(files)) };
  } catch {
    return undefined;
  }
}

/** Invalid content, such as an empty file after a power failure, counts as a host without revisions. */
function parseState(text: string): HostState {
  try {
    return decodeJson(HOST_STATE, text, 'state of the revisions');
  } catch {
    return NO_STATE;
  }
}
