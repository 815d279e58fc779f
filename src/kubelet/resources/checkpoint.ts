/**
 * Checkpoint files of assigned CPUs and memory, with upstream's names and fields. They survive a restart of this
 * process. Source: pkg/kubelet/cm/cpumanager/state, pkg/kubelet/cm/memorymanager/state.
 */

import { toUid, type Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import { formatCpuSet, parseCpuSet } from '../../base/linux/cpuset.ts';
import type { MemoryBlock } from '../core/topology/blocks.ts';

/** Assignments by pod UID and container name. */
export type Entries<T> = Map<Uid, Map<string, T>>;

export interface Checkpoint<T> {
  readonly policyName: string;
  readonly entries: Entries<T>;
}

export function writeCpuState(
  policyName: string,
  shared: Iterable<number>,
  entries: Entries<readonly number[]>,
): string {
  const lists = toObject(entries, formatCpuSet);
  return JSON.stringify({ policyName, defaultCpuSet: formatCpuSet(shared), entries: lists });
}

export const writeMemoryState = (policyName: string, entries: Entries<readonly MemoryBlock[]>): string =>
  JSON.stringify({ policyName, entries: toObject(entries, (blocks) => blocks) });

/** Throws an Error that describes the fault of the file. */
export function readCpuState(text: string): Checkpoint<readonly number[]> {
  return read(text, (value) => {
    if (typeof value !== 'string') throw new Error('an entry is not a list of CPUs');
    return parseCpuSet(value);
  });
}

/** Throws an Error that describes the fault of the file. */
export function readMemoryState(text: string): Checkpoint<readonly MemoryBlock[]> {
  return read(text, (value) => {
    if (!Array.isArray(value)) throw new Error('an entry is not a list of memory blocks');
    return value.map(blockOf);
  });
}

function blockOf(value: unknown): MemoryBlock {
  const { numaAffinity, type, size } = isObject(value) ? value : {};
  const nodes = Array.isArray(numaAffinity) ? numaAffinity.map(Number) : [];
  if (nodes.length === 0 || typeof type !== 'string' || typeof size !== 'number')
    throw new Error('a memory block has no numaAffinity, type or size');
  return { numaAffinity: nodes, type, size };
}

function read<T>(text: string, parse: (value: unknown) => T): Checkpoint<T> {
  let state: unknown;
  try {
    state = JSON.parse(text);
  } catch (error) {
    throw new Error(`not JSON: ${messageOf(error)}`, { cause: error });
  }
  if (!isObject(state) || typeof state['policyName'] !== 'string') throw new Error('policyName is missing');
  const entries: Entries<T> = new Map();
  for (const [uid, containers] of Object.entries(isObject(state['entries']) ? state['entries'] : {})) {
    if (!isObject(containers)) throw new Error(`entries.${uid} is not an object`);
    entries.set(toUid(uid), new Map(Object.entries(containers).map(([name, value]) => [name, parse(value)])));
  }
  return { policyName: state['policyName'], entries };
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const toObject = <T>(entries: Entries<T>, write: (value: T) => unknown): object =>
  Object.fromEntries(
    [...entries].map(([uid, containers]) => [
      uid,
      Object.fromEntries([...containers].map(([name, value]) => [name, write(value)])),
    ]),
  );
