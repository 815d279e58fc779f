/** Files of a host that configs manage. Keeps their original contents and applies changes. */

import { dirname } from 'node:path';
import { CodedError } from '../../../base/errors.ts';
import { differenceOf } from '../core/host-files/difference.ts';
import { jsonBytes, planFiles } from '../core/host-files/plan.ts';
import { EMPTY, ORIGINALS, type Owner, STATE, STATE_DIRECTORY, type State } from '../core/host-files/port.ts';
import type { UnitFile } from '../core/ignition/port.ts';
import type { HostFiles } from '../daemon/port.ts';
import { readAccounts } from './accounts.ts';
import { codeOf, type Disk } from './disk.ts';
import { readFileFacts } from './file-facts.ts';
import { readState } from './file-state.ts';
import { observePath } from './observe.ts';
import { createTransactions } from './transaction.ts';
import { type DirectoryWatch, watchPaths } from './watch.ts';

/**
 * File with which an administrator requests a repair. Source: docs/MachineConfigDaemon.md of
 * openshift/machine-config-operator.
 */
const FORCE = '/run/machine-config-daemon-force';
const PRIVATE_DIRECTORY: Owner = { mode: 0o700, uid: 0, gid: 0 };
const DIRECTORY: Owner = { mode: 0o755, uid: 0, gid: 0 };
/**
 * Directories of the host's own units, in the search order of systemd. Units in /etc/systemd/system may come from a
 * config.
 */
const UNIT_DIRECTORIES = ['/usr/local/lib/systemd/system', '/usr/lib/systemd/system', '/lib/systemd/system'];
const OWN_UNITS = '/etc/systemd/system';
const MAX_UNIT_BYTES = 1024 * 1024;
const MAX_UNITS = 4096;

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
  const read = async (): Promise<void> => {
    const found = await readState(disk);
    known = found !== undefined;
    state = found ?? EMPTY;
    rearm();
  };
  /** Completes or undoes a change whose undo failed, before another change overwrites its journal. */
  const settle = async (): Promise<void> => {
    if ((await transactions.replay()) !== 'nothing') await read();
  };
  return {
    async open() {
      await ensureDirectory(disk, STATE_DIRECTORY, PRIVATE_DIRECTORY);
      await ensureDirectory(disk, ORIGINALS, PRIVATE_DIRECTORY);
      await transactions.replay();
      await read();
      return known ? state.note : undefined;
    },
    async apply(tree, note) {
      await settle();
      const accounts = await readAccounts(disk);
      const hasState = (await disk.stat(STATE)) !== undefined;
      const plan = planFiles(state, await readFileFacts(disk, state, tree, accounts, hasState), note);
      await transactions.run(plan.batch);
      state = plan.next;
      known = true;
      rearm();
    },
    async note(note) {
      await settle();
      const next: State = { ...state, note };
      await transactions.replace(STATE, jsonBytes(next));
      state = next;
      known = true;
    },
    async differences() {
      const found: string[] = [];
      for (const [path, entry] of Object.entries(state.entries)) {
        const difference = await observePath(disk, path).then(
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
        // Also read the units that are enabled together with this unit.
        for (const [, also = ''] of file.text.matchAll(/^Also=(.*)$/gm)) pending.push(...also.trim().split(/\s+/));
      }
      return { homeOf: (user) => accounts.homeOf(user), unitFile: (name) => found.get(name) };
    },
  };
}

async function ensureDirectory(disk: Disk, path: string, owner: Owner): Promise<void> {
  if (path === '/' || (await disk.stat(path)) !== undefined) return;
  await ensureDirectory(disk, dirname(path), DIRECTORY);
  await disk.makeDirectory(path, owner);
  await disk.sync(dirname(path));
}

/**
 * Unit file that the host has without any config. For a file in /etc that a config has replaced, this is the original.
 */
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
