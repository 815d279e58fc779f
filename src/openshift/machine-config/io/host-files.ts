/** The files of a host that configs manage: their current and original contents, and changes of both. */

import { dirname } from 'node:path';
import { decodeJson, fields, list, object, own, text as string } from '../../../base/decode.ts';
import { CodedError } from '../../../base/errors.ts';
import { sha256Hex } from '../../../wire/digest.ts';
import type { Entry, Tree, UnitFile } from '../core/ignition/port.ts';
import type { HostFiles } from '../daemon/port.ts';
import { type Accounts, readAccounts } from './accounts.ts';
import { codeOf, type Disk, type Owner } from './disk.ts';
import { differenceOf, MAX_KEPT_BYTES, type Observed, observe, type Recorded } from './observe.ts';
import { type Batch, type Content, createTransactions, type Replacement } from './transaction.ts';
import { type DirectoryWatch, watchPaths } from './watch.ts';

export const STATE_DIRECTORY = '/var/lib/origin/machine-config';
/** Source: docs/MachineConfigDaemon.md of openshift/machine-config-operator. */
const FORCE = '/run/machine-config-daemon-force';
const STATE = `${STATE_DIRECTORY}/state.json`;
const ORIGINALS = `${STATE_DIRECTORY}/originals`;
const MAX_STATE_BYTES = 64 * 1024 * 1024;
const PRIVATE: Owner = { mode: 0o600, uid: 0, gid: 0 };
const PRIVATE_DIRECTORY: Owner = { mode: 0o700, uid: 0, gid: 0 };
const DIRECTORY: Owner = { mode: 0o755, uid: 0, gid: 0 };
/** In systemd's search order, without /etc/systemd/system, whose units may come from a config. */
const UNIT_DIRECTORIES = ['/usr/local/lib/systemd/system', '/usr/lib/systemd/system', '/lib/systemd/system'];
const OWN_UNITS = '/etc/systemd/system';
const MAX_UNIT_BYTES = 1024 * 1024;
const MAX_UNITS = 4096;

/** Original entry of a path before the first config; contents are in the directory of originals. */
type Original =
  | ({ readonly kind: 'file'; readonly stored: string } & Owner)
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'absent' };

interface State {
  readonly version: 1;
  readonly note: unknown;
  readonly entries: Readonly<Record<string, Recorded>>;
  readonly originals: Readonly<Record<string, Original>>;
  /** Directories that were created for entries, parents first. */
  readonly directories: readonly string[];
}

const STATE_SCHEMA = own<State>(object({ entries: fields, originals: fields, directories: list(string) }));
const EMPTY: State = { version: 1, note: null, entries: {}, originals: {}, directories: [] };

export function createHostFiles(disk: Disk, watchDirectory: DirectoryWatch): HostFiles {
  const transactions = createTransactions(disk, STATE_DIRECTORY);
  let state: State = EMPTY;
  let known = false;
  let watched: { listener: () => void; close: () => void } | undefined;
  const rearm = (): void => {
    if (watched === undefined) return;
    watched.close();
    watched.close = watchPaths(watchDirectory, [...Object.keys(state.entries), FORCE], watched.listener);
  };
  return {
    async open() {
      await ensureDirectory(disk, STATE_DIRECTORY, PRIVATE_DIRECTORY);
      await ensureDirectory(disk, ORIGINALS, PRIVATE_DIRECTORY);
      await transactions.replay();
      const read = await readState(disk);
      known = read !== undefined;
      state = read ?? EMPTY;
      rearm();
      return known ? state.note : undefined;
    },
    async apply(tree, note) {
      const accounts = await readAccounts(disk);
      const plan = await planChange(disk, state, tree, accounts, note);
      await transactions.run(plan.batch);
      state = plan.next;
      known = true;
      rearm();
    },
    async note(note) {
      const next: State = { ...state, note };
      await transactions.replace(STATE, jsonBytes(next));
      state = next;
      known = true;
    },
    async differences() {
      const found: string[] = [];
      for (const [path, entry] of Object.entries(state.entries)) {
        const difference = await observe(disk, path).then(
          (present) => differenceOf(path, entry, present),
          (error: unknown) =>
            error instanceof CodedError ? error.message : `${path}: ${codeOf(error) ?? 'unreadable'}`,
        );
        if (difference !== undefined) found.push(difference);
      }
      return found;
    },
    async takeForce() {
      if ((await disk.stat(FORCE)) === undefined) return false;
      await disk.remove(FORCE);
      return true;
    },
    watch(listener) {
      watched = { listener, close: () => {} };
      rearm();
      return {
        close() {
          watched?.close();
          watched = undefined;
        },
      };
    },
    async facts(units) {
      const accounts = await readAccounts(disk);
      const found = new Map<string, UnitFile>();
      const pending = units.flatMap((name) => [name, name.replace(/@[^.]*(?=\.[^.]*$)/, '@')]);
      const seen = new Set<string>();
      for (let name = pending.shift(); name !== undefined && seen.size < MAX_UNITS; name = pending.shift()) {
        if (seen.has(name) || name.includes('/')) continue;
        seen.add(name);
        const file = await unitFileOf(disk, state, name);
        if (file === undefined) continue;
        found.set(name, file);
        // Units that are enabled together with this one.
        for (const [, also = ''] of file.text.matchAll(/^Also=(.*)$/gm)) pending.push(...also.trim().split(/\s+/));
      }
      return { homeOf: (user) => accounts.homeOf(user), unitFile: (name) => found.get(name) };
    },
  };
}

const jsonBytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

async function readState(disk: Disk): Promise<State | undefined> {
  if ((await disk.stat(STATE)) === undefined) return undefined;
  const text = new TextDecoder().decode(await disk.read(STATE, MAX_STATE_BYTES));
  try {
    return decodeJson(STATE_SCHEMA, text, STATE);
  } catch (error) {
    const fix = 'delete it, and the files of the config count as the originals of the host';
    throw new CodedError('bad-state', `${STATE}: is not JSON; ${fix}`, { cause: error });
  }
}

async function ensureDirectory(disk: Disk, path: string, owner: Owner): Promise<void> {
  if (path === '/' || (await disk.stat(path)) !== undefined) return;
  await ensureDirectory(disk, dirname(path), DIRECTORY);
  await disk.makeDirectory(path, owner);
  await disk.sync(dirname(path));
}

/** A unit of the host itself. A unit in /etc counts only if it is the host's original. */
async function unitFileOf(disk: Disk, state: State, name: string): Promise<UnitFile | undefined> {
  const own = `${OWN_UNITS}/${name}`;
  const original = Object.hasOwn(state.originals, own) ? state.originals[own] : undefined;
  const places = original === undefined ? [own] : original.kind === 'file' ? [`${ORIGINALS}/${original.stored}`] : [];
  for (const path of [...places, ...UNIT_DIRECTORIES.map((directory) => `${directory}/${name}`)]) {
    const bytes = await disk.read(path, MAX_UNIT_BYTES).catch(() => undefined);
    if (bytes === undefined) continue;
    return { path: path.startsWith(ORIGINALS) ? own : path, text: new TextDecoder().decode(bytes) };
  }
  return undefined;
}

async function planChange(
  disk: Disk,
  state: State,
  tree: Tree,
  accounts: Accounts,
  note: unknown,
): Promise<{ readonly next: State; readonly batch: Batch }> {
  const entries: Record<string, Recorded> = {};
  const originals: Record<string, Original> = {};
  const saved: Replacement[] = [];
  const replacements: Replacement[] = [];
  const made = new Map<string, Owner>();
  // Names of originals are never reused, so that a power failure cannot mix them up.
  let serial = Object.values(state.originals).reduce(
    (most, original) => (original.kind === 'file' ? Math.max(most, Number(original.stored)) : most),
    0,
  );
  for (const [path, entry] of tree) {
    const content = contentOf(entry, accounts, path);
    await planParents(disk, path, entry, accounts, made);
    const present = await observe(disk, path);
    if (present.kind === 'directory' || present.kind === 'other')
      throw new CodedError(
        'not-a-file',
        `${path}: is a ${present.kind === 'directory' ? 'directory' : 'special file'}`,
      );
    const wanted = recordOf(content);
    if (differenceOf(path, wanted, present) !== undefined)
      replacements.push({ path, content, present: present.kind !== 'absent' });
    if (entry.kind === 'file' && entry.shared === true) continue;
    entries[path] = wanted;
    const kept = Object.hasOwn(state.originals, path) ? state.originals[path] : undefined;
    if (kept !== undefined) originals[path] = kept;
    else {
      serial += 1;
      const { original, copy } = await originalOf(disk, path, present, String(serial));
      originals[path] = original;
      if (copy !== undefined) saved.push(copy);
    }
  }
  for (const [path, original] of Object.entries(state.originals)) {
    if (tree.has(path)) continue;
    const present = await observe(disk, path).catch((): Observed => ({ kind: 'absent' }));
    if (present.kind === 'directory' || present.kind === 'other') continue;
    const content = await restored(disk, original);
    // The directory may have been deleted together with the file.
    if (content.kind !== 'absent') await planParents(disk, path, undefined, accounts, made);
    if (differenceOf(path, recordOf(content), present) !== undefined)
      replacements.push({ path, content, present: present.kind !== 'absent' });
  }
  const needed = (directory: string): boolean => [...tree.keys()].some((path) => path.startsWith(`${directory}/`));
  const directories = [...state.directories, ...[...made.keys()].filter((path) => !state.directories.includes(path))];
  const next: State = { version: 1, note, entries, originals, directories: directories.filter(needed) };
  const present = (await disk.stat(STATE)) !== undefined;
  const dropped = Object.entries(state.originals).flatMap(([path, original]) =>
    original.kind === 'file' && !Object.hasOwn(originals, path) ? [`${ORIGINALS}/${original.stored}`] : [],
  );
  const own: Content = { kind: 'file', bytes: jsonBytes(next), owner: PRIVATE };
  return {
    next,
    batch: {
      replacements: [...saved, ...replacements, { path: STATE, content: own, present }],
      directories: [...made].map(([path, owner]) => ({ path, owner })),
      leftDirectories: directories.filter((path) => !needed(path)).toReversed(),
      leftFiles: dropped,
    },
  };
}

function contentOf(entry: Entry, accounts: Accounts, path: string): Content {
  if (entry.kind !== 'file') return entry;
  try {
    const owner = { mode: entry.mode, uid: accounts.uidOf(entry.user), gid: accounts.gidOf(entry.group) };
    return { kind: 'file', bytes: entry.bytes, owner };
  } catch (error) {
    if (error instanceof CodedError) throw new CodedError(error.code, `${path}: ${error.message}`);
    throw error;
  }
}

const recordOf = (content: Content): Recorded =>
  content.kind === 'file'
    ? { kind: 'file', sha256: sha256Hex(content.bytes), size: content.bytes.length, ...content.owner }
    : content;

/** Plans the missing parent directories. Throws CodedError 'symlinked-parent'. */
async function planParents(
  disk: Disk,
  path: string,
  entry: Entry | undefined,
  accounts: Accounts,
  made: Map<string, Owner>,
): Promise<void> {
  const missing: string[] = [];
  for (let parent = dirname(path); parent !== '/' && !made.has(parent); parent = dirname(parent)) {
    const stat = await disk.stat(parent);
    if (stat?.kind === 'directory') break;
    if (stat !== undefined) {
      const fix = 'symbolic links are not followed; name the directory that it leads to';
      throw new CodedError('symlinked-parent', `${path}: ${parent} is not a directory; ${fix}`);
    }
    missing.push(parent);
  }
  const owner =
    entry?.kind === 'file' && entry.directoryMode !== undefined
      ? { mode: entry.directoryMode, uid: accounts.uidOf(entry.user), gid: accounts.gidOf(entry.group) }
      : DIRECTORY;
  for (const directory of missing.toReversed()) made.set(directory, owner);
}

async function originalOf(
  disk: Disk,
  path: string,
  present: Recorded,
  stored: string,
): Promise<{ readonly original: Original; readonly copy?: Replacement }> {
  if (present.kind !== 'file') return { original: present };
  const { mode, uid, gid } = present;
  const bytes = await disk.read(path, MAX_KEPT_BYTES);
  return {
    original: { kind: 'file', stored, mode, uid, gid },
    copy: { path: `${ORIGINALS}/${stored}`, content: { kind: 'file', bytes, owner: PRIVATE }, present: false },
  };
}

async function restored(disk: Disk, original: Original): Promise<Content> {
  if (original.kind !== 'file') return original;
  const { stored, mode, uid, gid } = original;
  return { kind: 'file', bytes: await disk.read(`${ORIGINALS}/${stored}`, MAX_KEPT_BYTES), owner: { mode, uid, gid } };
}
