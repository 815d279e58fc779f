/** `hyperedge members recover`: a survivor of a cluster without a quorum becomes a cluster of its own and keeps its data. */
import { access as accessFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { CodedError, messageOf } from '../base/errors.ts';
import { endOf, recoverAlone, type StoreEnd } from '../components/etcd/membership/offline.ts';
import type { EtcdLogEnd, EtcdMember } from '../io/grpc/index.ts';
import { askControl } from './control.ts';
import { type EtcdAccessOptions, etcdAccess, ownEtcd } from './etcd-access.ts';
import { dataLog, recoverMark } from './etcd-data.ts';
import { flushDirectory } from './files.ts';
import { canonicalRoot, pathsBelow } from './settings.ts';

export interface RecoverOptions extends EtcdAccessOptions {
  /** Of a store that is not this host's. */
  readonly dataDir?: string | undefined;
}

export interface Survivor {
  readonly name: string;
  readonly id: string;
  readonly voter: boolean;
  /** `here`: the member that would go on alone. `refuses`: it is there, and does not tell who asks how far its log reaches. */
  readonly state: 'here' | 'answers' | 'refuses' | 'gone';
  readonly end?: Omit<EtcdLogEnd, 'memberId' | 'name'>;
  readonly peerUrls: readonly string[];
  readonly problem?: string;
}

export interface RecoveryPlan {
  readonly dataDirectory: string;
  /** A process serves the store. */
  readonly running: boolean;
  readonly members: readonly Survivor[];
  readonly self: Survivor;
  /** Whose log reaches furthest. */
  readonly best: Survivor;
  /** Revisions that are in the log here and that this member does not know to be committed; they are kept. */
  readonly unsure: Range | undefined;
  /** Revisions that another survivor has and this member has not. */
  readonly lost: Range | undefined;
  /** Why it should not be done; undefined: nothing speaks against it. */
  readonly objection: string | undefined;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

/** A host under load takes its time, and whoever is taken for gone may be given up. */
const ASK_MS = 5000;
const RESTARTED_MS = 30_000;
const LOOK_AGAIN_MS = 200;

/** Looks and changes nothing. Throws CodedErrors that name the data directory or the endpoint. */
export async function planRecovery(options: RecoverOptions): Promise<RecoveryPlan> {
  const dataDirectory = resolve(options.dataDir ?? (await ownEtcd(options.root)).dataDirectory);
  await accessFile(join(dataDirectory, 'revisions.db')).catch(() => {
    throw new CodedError(
      'not-found',
      `${dataDirectory} holds no store; name another --data-dir, or restore a snapshot`,
    );
  });
  const here = (await stopped(dataDirectory)) ?? (await served(options, dataDirectory));
  const members = await Promise.all(here.members.map((member) => survivor(member, here, options)));
  members.sort((left, right) => left.name.localeCompare(right.name));
  const self = members.find(({ state }) => state === 'here');
  if (self?.end === undefined) {
    throw new CodedError('removed', `${dataDirectory}: its cluster has removed this member; recover another one`);
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

/** Undefined when a process has the data directory. */
async function stopped(dataDirectory: string): Promise<Here | undefined> {
  const end = await withStore(dataDirectory, endOf);
  return end === undefined ? undefined : { running: false, ...end, end: endAlone(end) };
}

function endAlone({ term, lastIndex, lastTerm, commit, revision, lastRevision }: StoreEnd): Here['end'] {
  return { term, lastIndex, lastTerm, commit, revision, lastRevision };
}

async function withStore<T>(
  dataDirectory: string,
  use: (...store: Parameters<typeof endOf>) => Promise<T>,
): Promise<T | undefined> {
  const storage = await dataLog(dataDirectory);
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

async function served(options: RecoverOptions, dataDirectory: string): Promise<Here> {
  const admin = (await etcdAccess(options)).open();
  try {
    const { memberId, name: _name, ...end } = await admin.logEnd(ASK_MS);
    const members = await admin.members(false, ASK_MS);
    const voters = members.filter(({ learner }) => !learner).map(({ id }) => id);
    return { running: true, memberId, end, members, voters };
  } catch (error) {
    throw new CodedError(
      'unavailable',
      `a process has ${dataDirectory} and does not answer (${messageOf(error)}); stop it, or name its --endpoints`,
      { cause: error },
    );
  } finally {
    admin.close();
  }
}

async function survivor(member: Here['members'][number], here: Here, options: RecoverOptions): Promise<Survivor> {
  const { id, name, peerUrls, clientUrls } = member;
  const known = { id, name, peerUrls, voter: here.voters.includes(id) };
  if (id === here.memberId) return { ...known, state: 'here', end: here.end };
  if (clientUrls.length === 0) return { ...known, state: 'gone', problem: 'it has told no client URL' };
  const admin = (await etcdAccess({ ...options, endpoints: clientUrls.join() })).open();
  try {
    const { memberId, name: _name, ...end } = await admin.logEnd(ASK_MS);
    if (memberId !== id)
      return { ...known, state: 'gone', problem: `at ${clientUrls.join()} answers member ${memberId}` };
    return { ...known, state: 'answers', end };
  } catch (error) {
    return { ...known, state: isRefusal(error) ? 'refuses' : 'gone', problem: messageOf(error) };
  } finally {
    admin.close();
  }
}

/** etcd's words for users: none was named, the password is wrong, it may not ask. */
function isRefusal(error: unknown): boolean {
  return /user name is empty|authentication failed|permission denied|invalid auth token/.test(messageOf(error));
}

/** As an election would decide. */
function isFurther({ end: left }: Survivor, { end: right }: Survivor): boolean {
  if (left === undefined || right === undefined) return left !== undefined;
  return left.lastTerm > right.lastTerm || (left.lastTerm === right.lastTerm && left.lastIndex > right.lastIndex);
}

const titleOf = ({ name, id }: Survivor): string => (name === '' ? id : name);

function objectionTo(members: readonly Survivor[], self: Survivor, best: Survivor): string | undefined {
  const voters = members.filter(({ voter }) => voter);
  if (members.length === 1) return 'this member is alone already: there is nothing to recover';
  const there = voters.filter(({ state }) => state !== 'gone');
  const quorum = Math.floor(voters.length / 2) + 1;
  if (there.length >= quorum) {
    return `${there.length} of ${voters.length} voters are there (${there.map(titleOf).join(', ')}), which is a quorum: start those that are stopped, and they go on by themselves`;
  }
  const refusing = members.filter(({ state }) => state === 'refuses');
  if (refusing.length > 0) {
    return `${refusing.map(titleOf).join(', ')} will not tell how far the log there reaches (${refusing[0]?.problem}): give --user NAME:PASSWORD of a user with the role root`;
  }
  if (best !== self) return `the log of ${titleOf(best)} reaches further; run this there`;
  return undefined;
}

/** Does it. Resolves when this member serves alone, or, where no process ran, when its data is ready for that. Throws CodedErrors. */
export async function recover(plan: RecoveryPlan, options: RecoverOptions): Promise<void> {
  if (!plan.running) {
    const done = await withStore(plan.dataDirectory, recoverAlone);
    if (done === undefined)
      throw new CodedError('in-use', `${plan.dataDirectory}: a process has taken it meanwhile; run this again`);
    return;
  }
  const { controlSocket } = pathsBelow(await canonicalRoot(options.root));
  const stop = `stop the process that serves ${plan.dataDirectory}, run this again, and start it`;
  if (options.dataDir !== undefined) throw new CodedError('in-use', stop);
  await askControl(controlSocket, 'GET', '/status').catch((error: unknown) => {
    throw new CodedError('not-running', `${messageOf(error)}; ${stop}`, { cause: error });
  });
  await writeFile(recoverMark(plan.dataDirectory), `${plan.self.id}\n`, { mode: 0o600 });
  await flushDirectory(plan.dataDirectory);
  await askControl(controlSocket, 'POST', '/restart/etcd');
  await untilAlone(options);
}

async function untilAlone(options: RecoverOptions): Promise<void> {
  const deadline = performance.now() + RESTARTED_MS;
  for (let last = ''; ; ) {
    const admin = (await etcdAccess(options)).open();
    try {
      if ((await admin.members(true, ASK_MS)).length === 1) return;
    } catch (error) {
      last = messageOf(error);
    } finally {
      admin.close();
    }
    if (performance.now() > deadline) {
      throw new CodedError(
        'timed-out',
        `the store has not come back after ${RESTARTED_MS / 1000} s (${last}); see: master-logs etcd etcd`,
      );
    }
    await new Promise((again) => setTimeout(again, LOOK_AGAIN_MS));
  }
}
