/**
 * Executables of several versions in one directory, named `hyperedge-VERSION`. The link `hyperedge` points to the
 * version that is started. Each method resolves after its change is on disk.
 */
import { randomUUID } from 'node:crypto';
import {
  chmod,
  copyFile,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CodedError, ifMissing, isMissingFile, messageOf } from '../../../base/errors.ts';
import { isReleaseVersion } from '../../../base/versions/release-version.ts';
import { parseSwitchRecord, type SwitchRecord } from '../core/port.ts';
import type { HostExecutables } from '../port.ts';
import { digestOf, flushDirectory } from './files.ts';

export interface ExecutablesOptions {
  /** Directory of the executables: `/usr/local/bin`. */
  readonly directory: string;
  readonly recordFile: string;
  readonly own: string;
  readonly startGuard: () => Promise<void>;
  readonly restart: () => Promise<void>;
}

const NAME = 'hyperedge';
const PREFIX = `${NAME}-`;
export const GUARD_LINK = 'hyperedge-guard';

export function createExecutables(options: ExecutablesOptions): HostExecutables {
  const { directory, recordFile, own } = options;
  const at = (version: string): string => join(directory, `${PREFIX}${version}`);
  const isHere = (): boolean => dirname(own) === directory;
  return {
    startGuard: options.startGuard,
    restart: options.restart,
    record: async () => parseSwitchRecord(await readIfPresent(recordFile), recordFile),
    writeRecord: (record: SwitchRecord) => writeDurably(recordFile, `${JSON.stringify(record)}\n`),
    countStart: async (id) => {
      const [known = '', count = ''] = ((await readIfPresent(`${recordFile}.starts`)) ?? '').trim().split(' ');
      const starts = known === id ? Number(count) + 1 : 1;
      await writeDurably(`${recordFile}.starts`, `${id} ${starts}\n`);
      return starts;
    },
    link: async () => {
      const target = await readlink(join(directory, NAME)).catch((error: NodeJS.ErrnoException) => {
        // EINVAL: the executable is a regular file.
        if (error.code === 'EINVAL' || isMissingFile(error)) return undefined;
        throw error;
      });
      return target?.startsWith(PREFIX) === true ? target.slice(PREFIX.length) : undefined;
    },
    setLink: async (version) => {
      const present = await lstat(at(version)).catch(ifMissing(undefined));
      if (present?.isFile() !== true) throw new CodedError('no-release', `${at(version)} is missing`);
      await link(`${PREFIX}${version}`, join(directory, NAME));
    },
    has: async (version, sha256) => {
      const present = await lstat(at(version)).catch(ifMissing(undefined));
      if (present?.isFile() !== true) return false;
      return sha256 === undefined || (await digestOf(at(version))) === sha256;
    },
    keepRunning: async (version) => {
      if (!isHere()) {
        throw new CodedError(
          'refused',
          `${own} runs, which hyperedge install has not placed in ${directory}; run hyperedge install first`,
        );
      }
      if (own !== at(version)) await place(own, at(version));
      await link(basename(at(version)), join(directory, GUARD_LINK));
    },
    place: async (version, path) => {
      if (!isReleaseVersion(version)) throw new CodedError('refused', `${version} is not a release version`);
      await place(path, at(version));
    },
    prune: async (keep) => {
      const kept = new Set(keep.map((version) => basename(at(version))));
      for (const name of await readdir(directory)) {
        const version = name.slice(PREFIX.length);
        if (!name.startsWith(PREFIX) || !isReleaseVersion(version) || kept.has(name)) continue;
        await rm(join(directory, name), { force: true });
      }
    },
  };
}

/** Text of a file. After any failure except a missing file, it is unknown whether an update is in progress. */
async function readIfPresent(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8')
    .catch(ifMissing(undefined))
    .catch((error: unknown) => {
      throw new CodedError('unreadable', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
    });
}

async function place(source: string, target: string): Promise<void> {
  const temporary = `${target}.new`;
  try {
    await copyFile(source, temporary);
    await chmod(temporary, 0o755);
    const file = await open(temporary, 'r');
    await file.sync().finally(() => file.close());
    await rename(temporary, target);
    await flushDirectory(dirname(target));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function link(target: string, path: string): Promise<void> {
  const temporary = `${path}.link`;
  await rm(temporary, { force: true });
  await symlink(target, temporary);
  await rename(temporary, path);
  await flushDirectory(dirname(path));
}

async function writeDurably(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  // The temporary name is unique, because the guard and the host process may write at the same time.
  const temporary = `${path}.${process.pid}.${randomUUID()}`;
  try {
    await writeFile(temporary, text, { mode: 0o600, flag: 'wx', flush: true });
    await rename(temporary, path);
  } catch (error) {
    // On a full disk the write is retried for hours, each time with another name.
    await rm(temporary, { force: true });
    throw error;
  }
  await flushDirectory(dirname(path));
}
