/** Executes the plans of `kubelet/core/cgroups` on the mounted cgroup hierarchies. */
import { readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { CgroupFileSystem, CgroupOperation, Hierarchy } from '../../core/cgroups/port.ts';
import { parseHierarchies } from './mountinfo.ts';

/** A killed process stays in its cgroup until it has been reaped; rmdir fails with EBUSY until then. */
const REMOVE_ATTEMPTS = 50;
const REMOVE_DELAY_MS = 20;

export function createCgroupFileSystem(options: { readonly mountinfo?: string } = {}): CgroupFileSystem {
  const mountinfo = options.mountinfo ?? '/proc/self/mountinfo';
  return {
    async hierarchies(): Promise<readonly Hierarchy[]> {
      const found = parseHierarchies(await readFile(mountinfo, 'utf8'));
      return Promise.all(
        found.map(async (hierarchy) =>
          hierarchy.version === 'v1'
            ? hierarchy
            : { ...hierarchy, controllers: words(await readOrUndefined(join(hierarchy.mount, 'cgroup.controllers'))) },
        ),
      );
    },
    async perform(operations) {
      for (const operation of operations) await perform(operation);
    },
    async list(directory) {
      try {
        const entries = await readdir(directory, { withFileTypes: true });
        return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
      } catch (error) {
        if (codeOf(error) === 'ENOENT') return [];
        throw error;
      }
    },
    read: (directory, file) => readOrUndefined(join(directory, file)),
    removeTree,
  };
}

async function perform(operation: CgroupOperation): Promise<void> {
  if (operation.op === 'mkdir') {
    await mkdir(operation.directory, { recursive: true });
    return;
  }
  const path = join(operation.directory, operation.file);
  if (operation.op === 'inherit') {
    const present = await readOrUndefined(path);
    if (present === undefined || present.trim() !== '') return;
    const parent = await readOrUndefined(join(operation.directory, '..', operation.file));
    if (parent !== undefined && parent.trim() !== '') await writeFile(path, parent.trim());
    return;
  }
  try {
    await writeFile(path, operation.value, { flag: 'r+' });
  } catch (error) {
    if (operation.optional) return;
    throw new CodedError('cgroup-write', `cannot write ${operation.value} to ${path}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

async function removeTree(directory: string): Promise<void> {
  let entries: string[];
  try {
    entries = (await readdir(directory, { withFileTypes: true }))
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    throw error;
  }
  for (const name of entries) await removeTree(join(directory, name));
  for (let attempt = 0; ; attempt += 1) {
    try {
      await rmdir(directory);
      return;
    } catch (error) {
      const code = codeOf(error);
      if (code === 'ENOENT') return;
      if (code !== 'EBUSY' || attempt >= REMOVE_ATTEMPTS) {
        throw new CodedError('cgroup-remove', `cannot remove ${directory}: ${messageOf(error)}`, { cause: error });
      }
    }
    await killAll(directory);
    await delay(REMOVE_DELAY_MS);
  }
}

async function killAll(directory: string): Promise<void> {
  for (const word of words(await readOrUndefined(join(directory, 'cgroup.procs')))) {
    const pid = Number(word);
    if (!Number.isInteger(pid) || pid <= 1) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if (codeOf(error) !== 'ESRCH') throw error;
    }
  }
}

/**
 * Reads synchronously, because cgroupfs is not on a disk: a synchronous read takes microseconds, an asynchronous read
 * ten times as long.
 */
async function readOrUndefined(path: string): Promise<string | undefined> {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ENODEV' || code === 'EOPNOTSUPP') return undefined;
    throw error;
  }
}

const words = (text: string | undefined): string[] => (text ?? '').split(/\s+/).filter((word) => word !== '');

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
