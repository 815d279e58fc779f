/**
 * State of the runtime on disk, from which a restarted host process restores every sandbox and container: one small
 * JSON file each, replaced by rename. Records of another boot describe processes and mounts that no longer exist.
 *
 *     <state>/sandboxes/<id>/record.json   resolv.conf  hostname
 *     <state>/containers/<id>/record.json  config.json  rootfs/ upper/ work/  attach ctl pid oom
 *     <state>/exits/<container id>         exit code, written by conmon
 *     <run>/memory/{sandboxes,containers}/<id>/   as below <state>, for control-plane pods while the disk is full
 *     <run>/sandboxes/<id>/{net,ipc,uts,shm}   pinned namespaces and shared memory (mounts)
 *     <run>/mapped/<container id>/         mounts of a container in a user namespace
 *     <run>/runc/                          runc's own state
 *     <run>/handlers/<name>/               state of other runtimes
 */

import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Uid } from '../../../base/brand.ts';
import { decodeJson, object, own, text } from '../../../base/decode.ts';
import { CodedError, ifMissing, isDiskFull, messageOf } from '../../../base/errors.ts';
import type { ContainerUser, IdMapping, PortMapping } from '../../port.ts';

export interface SandboxRecord {
  readonly id: string;
  readonly bootId: string;
  readonly name: string;
  readonly namespace: string;
  readonly uid: Uid;
  readonly attempt: number;
  readonly hostname: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly logDirectory: string;
  readonly cgroupParent: string;
  readonly hostNetwork: boolean;
  readonly hostPid: boolean;
  readonly hostIpc: boolean;
  readonly portMappings: readonly PortMapping[];
  readonly sysctls: Readonly<Record<string, string>>;
  /** ID mapping of the pod's user namespace; absent if the pod uses the host's. */
  readonly userNamespace?: IdMapping;
  /** Handler of the pod's runtime class; absent for the default. */
  readonly runtimeHandler?: string;
  readonly mayUseMemory?: boolean;
  readonly createdAtMs: number;
  readonly ips: readonly string[];
  /** First process of the pid namespace that the containers share, if they share one. */
  readonly pidHolder: { readonly pid: number; readonly start: string } | undefined;
  readonly stopped: boolean;
}

export interface ContainerRecord {
  readonly id: string;
  readonly sandboxId: string;
  readonly bootId: string;
  readonly name: string;
  readonly attempt: number;
  readonly image: string;
  readonly imageId: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly logPath: string;
  readonly stdin: boolean;
  readonly tty: boolean;
  readonly stopSignal: string;
  readonly createdAtMs: number;
  /** 0 if the container was never started. */
  readonly startedAtMs: number;
  /** 0 if the container has not exited. */
  readonly finishedAtMs: number;
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  readonly pid: number;
  /** Absent in records of earlier releases. */
  readonly user?: ContainerUser;
  readonly pidStart: string;
  readonly monitorPid: number;
  readonly monitorStart: string;
  readonly cgroups: Readonly<Record<string, string>>;
  /** Handler of the sandbox; absent for the default. */
  readonly runtimeHandler?: string;
  /** Whether the container uses the root of the host, as control-plane containers do. */
  readonly ofHost?: boolean;
  /** Whether `rootfs` is an overlay mount. */
  readonly overlay: boolean;
}

export interface RuntimePaths {
  readonly sandboxes: string;
  readonly containers: string;
  readonly exits: string;
  readonly memorySandboxes: string;
  readonly memoryContainers: string;
  readonly runSandboxes: string;
  readonly runcRoot: string;
  readonly handlers: string;
  readonly execs: string;
  /** Directory of the roots and volumes of containers in user namespaces, by container. */
  readonly mappedRoots: string;
}

export function runtimePaths(stateRoot: string, runRoot: string): RuntimePaths {
  return {
    sandboxes: join(stateRoot, 'sandboxes'),
    containers: join(stateRoot, 'containers'),
    exits: join(stateRoot, 'exits'),
    memorySandboxes: join(runRoot, 'memory/sandboxes'),
    memoryContainers: join(runRoot, 'memory/containers'),
    runSandboxes: join(runRoot, 'sandboxes'),
    runcRoot: join(runRoot, 'runc'),
    handlers: join(runRoot, 'handlers'),
    execs: join(runRoot, 'execs'),
    mappedRoots: join(runRoot, 'mapped'),
  };
}

export async function makePaths(paths: RuntimePaths): Promise<void> {
  for (const path of Object.values(paths)) await mkdir(path, { recursive: true, mode: 0o700 });
}

/** 64 hex digits, as in other runtimes. */
export const newId = (): string => randomBytes(32).toString('hex');

export async function saveRecord(directory: string, record: SandboxRecord | ContainerRecord): Promise<void> {
  const temporary = join(directory, `.record.${randomBytes(4).toString('hex')}`);
  try {
    await writeFile(temporary, JSON.stringify(record), { mode: 0o600 });
    await rename(temporary, join(directory, 'record.json'));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/**
 * Saves the first record of a sandbox or container and flushes it. After a power failure the record proves that the
 * container has existed, so a container that may run only once is not started a second time.
 */
export async function saveFirstRecord(directory: string, record: SandboxRecord | ContainerRecord): Promise<void> {
  await saveRecord(directory, record);
  for (const path of [join(directory, 'record.json'), directory]) {
    const handle = await open(path);
    await handle.sync().finally(() => handle.close());
  }
}

/**
 * Saves the end of a sandbox or container; returns whether it was saved. On a full disk the old record stays, and the
 * next process determines the end itself, so that containers can be terminated on a full disk.
 */
export async function saveEnd(directory: string, record: SandboxRecord | ContainerRecord): Promise<boolean> {
  try {
    await saveRecord(directory, record);
    return true;
  } catch (error) {
    if (isDiskFull(error)) return false;
    throw error;
  }
}

/**
 * All records below `root`, and the names of directories without a valid one (an interrupted creation). Throws
 * CodedError 'unreadable' if a record cannot be read: its containers may still run, so nothing may be removed.
 */
export async function loadRecords<R extends { readonly id: string }>(
  root: string,
): Promise<{ readonly records: readonly R[]; readonly broken: readonly string[] }> {
  const records: R[] = [];
  const broken: string[] = [];
  for (const name of await readdir(root)) {
    const path = join(root, name, 'record.json');
    const content = await readFile(path, 'utf8')
      .catch(ifMissing(undefined))
      .catch((error: unknown) => {
        throw new CodedError(
          'unreadable',
          `${path}: cannot be read: ${messageOf(error)}; check the disk with hyperedge doctor, or restart the host`,
          { cause: error },
        );
      });
    const record = content === undefined ? undefined : parseRecord<R>(content, path);
    if (record?.id === name) records.push(record);
    else broken.push(name);
  }
  return { records, broken };
}

/**
 * Parses a record. Only this runtime writes these files, so a record with an identifier is trusted. A file torn by a
 * power failure does not parse; then the result is undefined.
 */
function parseRecord<R extends { readonly id: string }>(content: string, path: string): R | undefined {
  try {
    return decodeJson(own<R>(object({ id: text })), content, path);
  } catch {
    return undefined;
  }
}
