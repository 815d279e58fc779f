/** Revisions on the disk of this host. Commands read them without the API server and the host process. */

import { readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CodedError } from '../../base/errors.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import { OPERANDS, type Operand } from '../../openshift/revisions/index.ts';
import { keptFiles, keptState, replace } from '../../openshift/revisions/io/index.ts';
import { canonicalRoot, type Paths, pathsBelow } from '../config/paths.ts';
import { CONTAINERS, type ControlPlaneComponent, FOLLOWED } from './revision-inputs.ts';

export interface ListedRevision {
  readonly component: Operand;
  readonly revision: number;
  readonly state: 'good' | 'failed' | 'trial';
  /** Whether this host runs the revision. */
  readonly current: boolean;
  readonly created: string;
  readonly reason: string;
  /** Reason for a failed revision. */
  readonly error?: string;
}

/** Names of private files. Commands do not print their content. */
const SECRET = /\.(key|pem|kubeconfig)$|encryption|outbound/;

/** Operand names for commands and their completion. */
export const OPERAND_NAMES: readonly string[] = OPERANDS;

/** The operand with the given name. Throws CodedError 'not-found' for an unknown name. */
export function operandNamed(name: string): Operand {
  const found = OPERANDS.find((each) => each === name);
  if (found === undefined)
    throw new CodedError('not-found', `${name}: no such component; give one of ${OPERANDS.join(', ')}`);
  return found;
}

const pathsOf = async (root: string | undefined): Promise<Paths> => pathsBelow(await canonicalRoot(root));

export async function listRevisions(root: string | undefined, only?: Operand): Promise<ListedRevision[]> {
  const { staticPodResources } = await pathsOf(root);
  const listed: ListedRevision[] = [];
  for (const component of OPERANDS) {
    if (only !== undefined && only !== component) continue;
    const { current, revisions, failure } = await keptState(staticPodResources, component);
    for (const each of [...revisions].sort((left, right) => left.revision - right.revision)) {
      listed.push({
        component,
        revision: each.revision,
        state: each.outcome,
        current: each.revision === current,
        created: timestamp(each.atMs),
        reason: each.reason,
        ...(failure?.revision === each.revision ? { error: failure.errors.join('; ') } : {}),
      });
    }
  }
  return listed;
}

/** A revision that did not become healthy on this host. It is listed until its files are repaired. */
export interface FailedRevision {
  readonly operand: Operand;
  /** Container that the revision belongs to. */
  readonly component: ControlPlaneComponent;
  readonly revision: number;
  /** Number of the revision that runs instead. */
  readonly running: number;
  readonly failedAt: string;
  readonly error: string;
}

export async function failedRevisions(staticPodResources: string): Promise<FailedRevision[]> {
  const states = await Promise.all(OPERANDS.map((operand) => keptState(staticPodResources, operand)));
  return OPERANDS.flatMap((operand, index) => {
    const state = states[index];
    if (state?.failure === undefined) return [];
    const { revision, atMs, errors } = state.failure;
    const failedAt = timestamp(atMs);
    const component = CONTAINERS[operand];
    return [{ operand, component, revision, running: state.current, failedAt, error: errors.join('; ') }];
  });
}

/** Revisions of a component that were started and have not become healthy yet. */
export async function revisionsOnTrial(staticPodResources: string, component: string): Promise<number[]> {
  const operands = OPERANDS.filter((operand) => CONTAINERS[operand] === component);
  const states = await Promise.all(operands.map((operand) => keptState(staticPodResources, operand)));
  return states.flatMap(({ current, trial }) => (trial === undefined ? [] : [current]));
}

export function failureMessage({ operand, component, revision, running, error }: FailedRevision): string {
  const directory = component === 'etcd' ? '/etc/etcd' : '/etc/origin/master';
  return (
    `${component}: revision ${revision} failed and revision ${running} runs: ${error}; correct the files in ` +
    `${directory} or run: hyperedge revisions rollback ${operand} ${running}`
  );
}

export interface FileDifference {
  readonly name: string;
  readonly change: 'added' | 'removed' | 'changed';
  /** Changed lines with the prefix `-` or `+`; undefined if the content is private or not text. */
  readonly lines?: readonly string[];
}

/**
 * Differences between the files of revision `from` and those of revision `to`, or the current files if `to` is
 * undefined. Throws CodedError 'not-found'.
 */
export async function diffRevisions(
  root: string | undefined,
  component: Operand,
  from: number,
  to: number | undefined,
): Promise<FileDifference[]> {
  const paths = await pathsOf(root);
  const before = texts(await filesOf(paths, component, from));
  const after = to === undefined ? await liveTexts(paths, before) : texts(await filesOf(paths, component, to));
  const names = [...new Set([...before.keys(), ...after.keys()])].sort();
  return names.flatMap((name): FileDifference[] => {
    const [left, right] = [before.get(name), after.get(name)];
    if (left === right) return [];
    const change = left === undefined ? 'added' : right === undefined ? 'removed' : 'changed';
    const lines = SECRET.test(name) ? undefined : differingLines(left ?? '', right ?? '');
    return [{ name, change, ...(lines === undefined ? {} : { lines }) }];
  });
}

/**
 * Copies the configuration files of a revision back to the directories that administrators edit. The host process then
 * installs them as a new revision. Certificates and keys are restored only with `all`. Resolves with the paths of the
 * changed files.
 */
export async function rollBack(
  root: string | undefined,
  component: Operand,
  revision: number,
  all: boolean,
): Promise<string[]> {
  const paths = await pathsOf(root);
  const files = await filesOf(paths, component, revision);
  const restored: string[] = [];
  for (const [name, { content, mode }] of files) {
    if (!all && FOLLOWED.test(name)) continue;
    const path = livePath(paths, name);
    const present = await readFile(path).catch(() => undefined);
    if (present?.equals(content) === true) continue;
    await replace(path, content, mode);
    restored.push(path);
  }
  return restored;
}

async function filesOf(
  { staticPodResources }: Paths,
  component: Operand,
  revision: number,
): Promise<NonNullable<Awaited<ReturnType<typeof keptFiles>>>> {
  const files = await keptFiles(staticPodResources, component, revision);
  if (files !== undefined) return files;
  throw new CodedError(
    'not-found',
    `${component}: revision ${revision} is not on this host; see hyperedge revisions list`,
  );
}

const livePath = ({ masterConfig, etcdConfig }: Paths, name: string): string => {
  const [directory = '', ...rest] = name.split('/');
  return join(dirname(directory === 'etcd' ? etcdConfig : masterConfig), ...rest);
};

const texts = (files: ReadonlyMap<string, { readonly content: Buffer }>): Map<string, string> =>
  new Map([...files].map(([name, { content }]) => [name, content.toString('utf8')]));

async function liveTexts(paths: Paths, of: ReadonlyMap<string, string>): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const name of of.keys()) {
    const path = livePath(paths, name);
    if ((await stat(path).catch(() => undefined))?.isFile() === true) found.set(name, await readFile(path, 'utf8'));
  }
  return found;
}

const MAX_LINES = 2_000;

/**
 * Lines that differ, from a longest common subsequence. The algorithm is fast enough, because configuration files are
 * short.
 */
function differingLines(before: string, after: string): string[] | undefined {
  const [left, right] = [before.split('\n'), after.split('\n')];
  if (left.length > MAX_LINES || right.length > MAX_LINES || before.includes('\0') || after.includes('\0'))
    return undefined;
  const width = right.length + 1;
  const common = new Uint16Array((left.length + 1) * width);
  const at = (row: number, at: number): number => common[row * width + at] ?? 0;
  for (let row = left.length - 1; row >= 0; row--) {
    for (let place = right.length - 1; place >= 0; place--) {
      common[row * width + place] =
        left[row] === right[place] ? at(row + 1, place + 1) + 1 : Math.max(at(row + 1, place), at(row, place + 1));
    }
  }
  const lines: string[] = [];
  let [row, place] = [0, 0];
  while (row < left.length || place < right.length) {
    if (row < left.length && place < right.length && left[row] === right[place]) {
      row += 1;
      place += 1;
    } else if (place >= right.length || (row < left.length && at(row + 1, place) >= at(row, place + 1)))
      lines.push(`-${left[row++]}`);
    else lines.push(`+${right[place++]}`);
  }
  return lines;
}
