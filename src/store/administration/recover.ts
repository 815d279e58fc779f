/**
 * `hyperedge members recover`: turns a surviving member of a cluster without quorum into a single-member cluster with
 * its data.
 */
import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { CodedError, messageOf } from '../../base/errors.ts';
import { endOf, recoverAlone, type StoreEnd } from '../membership/offline.ts';
import { flushDirectory } from './durable-files.ts';
import type { EtcdAdmin, EtcdLogEnd, EtcdMember, StoreFiles } from './port.ts';

export interface RecoveryDeps {
  readonly dataDirectory: string;
  readonly files: StoreFiles;
  /** Opens a client of this store, or of another member's client URLs. Throws CodedErrors of the configuration. */
  open(clientUrls?: readonly string[]): Promise<EtcdAdmin>;
  readonly monotonicMs: () => number;
}

/** The host process that runs the store. Both calls throw CodedErrors. */
export interface StoreProcess {
  check(): Promise<void>;
  restart(): Promise<void>;
}

export interface Survivor {
  readonly name: string;
  readonly id: string;
  readonly voter: boolean;
  /** `here`: the member to recover. `refuses`: it runs but rejects the user. `gone`: it is unreachable. */
  readonly state: 'here' | 'answers' | 'refuses' | 'gone';
  readonly end?: Omit<EtcdLogEnd, 'memberId' | 'name'>;
  readonly peerUrls: readonly string[];
  readonly problem?: string;
}

export interface RecoveryPlan {
  readonly dataDirectory: string;
  /** Whether a process has the data directory open. */
  readonly running: boolean;
  readonly members: readonly Survivor[];
  readonly self: Survivor;
  /** The member with the most advanced log. */
  readonly best: Survivor;
  /** Revisions in this log that are not known to be committed. They are kept. */
  readonly unsure: Range | undefined;
  /** Revisions that another survivor has and this log lacks. */
  readonly lost: Range | undefined;
  /** Reason why recovery requires --force. Undefined when it does not. */
  readonly objection: string | undefined;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * Timeout of a request. It is long enough for a loaded host, because recovery gives up the members that do not respond.
 */
const CALL_MS = 5000;
const RESTART_MS = 30_000;
const POLL_MS = 200;

/**
 * Path of a marker file. While it exists, the next start of the store turns the member into a single-member cluster.
 */
export function recoverMark(dataDirectory: string): string {
  return join(dataDirectory, 'recover-alone');
}

/** Plans the recovery without changes. Throws CodedErrors with the data directory or the endpoint. */
export async function planRecovery(deps: RecoveryDeps): Promise<RecoveryPlan> {
  const { dataDirectory } = deps;
  await access(join(dataDirectory, 'revisions.db')).catch(() => {
    throw new CodedError(
      'not-found',
      `${dataDirectory} holds no store; name another --data-dir, or restore a snapshot`,
    );
  });
  const here = (await stopped(deps)) ?? (await served(deps));
  const members = await Promise.all(here.members.map((member) => survivor(member, here, deps)));
  members.sort((left, right) => left.name.localeCompare(right.name));
  const self = members.find(({ state }) => state === 'here');
  if (self?.end === undefined) {
    throw new CodedError(
      'removed',
      `${dataDirectory}: this member was removed from its cluster; recover another member`,
    );
  }
  const best = members.reduce((left, right) => (isFurther(right, left) ? right : left), self);
  const { revision, lastRevision } = self.end;
  const known = Math.max(...members.map(({ end }) => Math.min(end?.revision ?? 0, lastRevision)), revision);
  return {
    dataDirectory,
    running: here.running,
    members,
    self,
    best,
    unsure: rangeOf(known + 1, lastRevision),
    lost: rangeOf(lastRevision + 1, best.end?.lastRevision ?? 0),
    objection: objectionTo(members, self, best),
  };
}

const rangeOf = (from: number, to: number): Range | undefined => (from <= to ? { from, to } : undefined);

interface Here {
  readonly running: boolean;
  readonly memberId: string;
  readonly end: Omit<EtcdLogEnd, 'memberId' | 'name'>;
  readonly members: ReadonlyArray<Pick<EtcdMember, 'id' | 'name' | 'peerUrls' | 'clientUrls'>>;
  readonly voters: readonly string[];
}

/** Returns undefined when a process has the data directory open. */
async function stopped(deps: RecoveryDeps): Promise<Here | undefined> {
  const end = await withStore(deps, endOf);
  return end === undefined ? undefined : { running: false, ...end, end: endAlone(end) };
}

function endAlone({ term, lastIndex, lastTerm, commit, revision, lastRevision }: StoreEnd): Here['end'] {
  return { term, lastIndex, lastTerm, commit, revision, lastRevision };
}

async function withStore<T>(
  { dataDirectory, files }: RecoveryDeps,
  use: (...store: Parameters<typeof endOf>) => Promise<T>,
): Promise<T | undefined> {
  const storage = await files.openLog(dataDirectory);
  let failed = false;
  try {
    const state = await storage.open(() => {
      failed = true;
    });
    return await use(state, storage);
  } catch (error) {
    if (error instanceof CodedError && error.code === 'in-use') return undefined;
    throw error;
  } finally {
    if (!failed) await storage.close();
  }
}

async function served({ dataDirectory, open }: RecoveryDeps): Promise<Here> {
  const admin = await open();
  try {
    const { memberId, name: _name, ...end } = await admin.logEnd(CALL_MS);
    const members = await admin.localMembers(CALL_MS);
    const voters = members.filter(({ learner }) => !learner).map(({ id }) => id);
    return { running: true, memberId, end, members, voters };
  } catch (error) {
    throw new CodedError(
      'unavailable',
      `${dataDirectory}: a process has it open and does not answer (${messageOf(error)}); stop it, or give its --endpoints`,
      { cause: error },
    );
  } finally {
    admin.close();
  }
}

async function survivor(member: Here['members'][number], here: Here, { open }: RecoveryDeps): Promise<Survivor> {
  const { id, name, peerUrls, clientUrls } = member;
  const known = { id, name, peerUrls, voter: here.voters.includes(id) };
  if (id === here.memberId) return { ...known, state: 'here', end: here.end };
  if (clientUrls.length === 0) return { ...known, state: 'gone', problem: 'the member advertises no client URL' };
  const admin = await open(clientUrls);
  try {
    const { memberId, name: _name, ...end } = await admin.logEnd(CALL_MS);
    if (memberId !== id)
      return { ...known, state: 'gone', problem: `the member at ${clientUrls.join()} has the ID ${memberId}` };
    return { ...known, state: 'answers', end };
  } catch (error) {
    return { ...known, state: isRefusal(error) ? 'refuses' : 'gone', problem: messageOf(error) };
  } finally {
    admin.close();
  }
}

/** Whether `error` is one of etcd's authentication and authorization errors. */
function isRefusal(error: unknown): boolean {
  return /user name is empty|authentication failed|permission denied|invalid auth token/.test(messageOf(error));
}

/** Compares as raft's vote rule does: last term, then last index. */
function isFurther({ end: left }: Survivor, { end: right }: Survivor): boolean {
  if (left === undefined || right === undefined) return left !== undefined;
  return left.lastTerm > right.lastTerm || (left.lastTerm === right.lastTerm && left.lastIndex > right.lastIndex);
}

const titleOf = ({ name, id }: Survivor): string => (name === '' ? id : name);

function objectionTo(members: readonly Survivor[], self: Survivor, best: Survivor): string | undefined {
  const voters = members.filter(({ voter }) => voter);
  if (members.length === 1) return 'this member is the only member: there is nothing to recover';
  const reachable = voters.filter(({ state }) => state !== 'gone');
  const quorum = Math.floor(voters.length / 2) + 1;
  if (reachable.length >= quorum) {
    return `${reachable.length} of ${voters.length} voters are reachable (${reachable.map(titleOf).join(', ')}), which is a quorum: start the stopped ones, and the cluster serves again`;
  }
  const refusing = members.filter(({ state }) => state === 'refuses');
  if (refusing.length > 0) {
    return `${refusing.map(titleOf).join(', ')} rejected the request for the end of the log (${refusing[0]?.problem}): give --user NAME:PASSWORD of a user with the role root`;
  }
  if (best !== self) return `the log of ${titleOf(best)} is more advanced; run this command there`;
  return undefined;
}

/**
 * Recovers the member. Resolves when it serves as a single-member cluster or, if no process ran, when its data is
 * ready. `storeProcess`: the host process that runs this store. Undefined: another process runs it. Throws CodedErrors.
 */
export async function recover(
  plan: RecoveryPlan,
  deps: RecoveryDeps,
  storeProcess: StoreProcess | undefined,
): Promise<void> {
  if (!plan.running) {
    const done = await withStore(deps, recoverAlone);
    if (done === undefined)
      throw new CodedError('in-use', `${plan.dataDirectory}: a process has opened it; run this command again`);
    return;
  }
  const stop = `stop the process that serves ${plan.dataDirectory}, run this command again, and start the process`;
  if (storeProcess === undefined) throw new CodedError('in-use', stop);
  await storeProcess.check().catch((error: unknown) => {
    throw new CodedError('not-running', `${messageOf(error)}; ${stop}`, { cause: error });
  });
  await writeFile(recoverMark(plan.dataDirectory), `${plan.self.id}\n`, { mode: 0o600 });
  await flushDirectory(plan.dataDirectory);
  await storeProcess.restart();
  await untilAlone(deps);
}

async function untilAlone({ open, monotonicMs }: RecoveryDeps): Promise<void> {
  const deadline = monotonicMs() + RESTART_MS;
  for (let last = ''; ; ) {
    const admin = await open();
    try {
      if ((await admin.members(CALL_MS)).length === 1) return;
    } catch (error) {
      last = messageOf(error);
    } finally {
      admin.close();
    }
    if (monotonicMs() > deadline) {
      throw new CodedError(
        'timed-out',
        `the store does not serve requests ${RESTART_MS / 1000} s after its restart (${last}); see: master-logs etcd etcd`,
      );
    }
    await setTimeout(POLL_MS);
  }
}
