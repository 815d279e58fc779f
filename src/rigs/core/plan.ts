/**
 * Assignment of rigs to claims. Claims wait in a fair queue. A claim holds its rig for the duration of its lease. The
 * next claim gets the rig after the pods of the previous claim have terminated.
 */

import type { ResourceClaim } from '../../api/devices/types.ts';
import type { Node, Pod } from '../../api/generated/core/v1.ts';
import type { Condition } from '../../api/generated/meta/v1.ts';
import { transitionTime } from '../../api/meta/conditions.ts';
import { objectKey } from '../../api/meta/object.ts';
import { omitEmpty, omitUndefined } from '../../base/json/omit-fields.ts';
import { labelSelectorOf, matchesLabels } from '../../base/selector.ts';
import { parseDuration } from '../../base/time/duration.ts';
import { timeMs, timestamp } from '../../base/time/timestamps.ts';
import { claimedFixtures, fixtureDeviceName } from '../kinds/fixtures.ts';
import {
  type ClaimPhase,
  DEFAULT_LEASE,
  FIXTURE_PREFIX,
  RELEASE_FINALIZER,
  type Rig,
  type RigClaim,
} from '../kinds/rig-types.ts';
import { historyOf } from './history.ts';
import { claimNameOf, fixturesOf, foreignFixtures, gateOf, isGated, isUsing, rigsByFixture } from './pods.ts';
import { fairOrder, requesterOf } from './queue.ts';
import { rigsWithSharedFixtures } from './shared-fixtures.ts';

const HOSTNAME = 'kubernetes.io/hostname';

export interface RigSnapshot {
  readonly rigs: readonly Rig[];
  readonly claims: readonly RigClaim[];
  /** Pods that reference a claim or request a fixture. */
  readonly pods: readonly Pod[];
  readonly nodes: readonly Node[];
  readonly deviceClaims: readonly ResourceClaim[];
}

export interface Eviction {
  readonly pod: Pod;
  readonly reason: string;
  readonly message: string;
}

/**
 * Longest grace period of evicted pods in seconds, the default of Kubernetes. The author of a pod chooses its grace
 * period, so without a limit the pod could keep the rig after the end of the lease.
 */
export const EVICTION_GRACE_SECONDS = 30;

export interface Ungating {
  readonly pod: Pod;
  readonly gate: string;
  /** Labels of the node with the rig. */
  readonly nodeSelector: Readonly<Record<string, string>>;
}

export interface RigPlan {
  /** Desired status of each claim, by `<namespace>/<name>`. */
  readonly claims: ReadonlyMap<string, NonNullable<RigClaim['status']>>;
  /** Desired status of each rig, by name. */
  readonly rigs: ReadonlyMap<string, NonNullable<Rig['status']>>;
  readonly evict: readonly Eviction[];
  readonly ungate: readonly Ungating[];
  /** Gated pods that stay gated although their claim holds its rig: they request other fixtures or another node. */
  readonly refused: readonly Eviction[];
  /** Deleted claims without running pods, whose finalizer is removed. */
  readonly release: readonly RigClaim[];
  /** Time at which the next lease ends, in milliseconds since the epoch. */
  readonly nextMs: number | undefined;
}

interface Outcome {
  phase: ClaimPhase;
  reason: string;
  message: string;
  rig?: string;
  grantedAt?: string;
  expiresAt?: string;
  position: number;
}

export function planRigs(snapshot: RigSnapshot, nowMs: number): RigPlan {
  const rigs = new Map(snapshot.rigs.map((rig) => [rig.metadata?.name ?? '', rig]));
  const owners = rigsByFixture(snapshot.rigs);
  const nodes = new Map([...rigs].map(([name, rig]) => [name, nodeOf(rig, snapshot.nodes)]));
  const claims = new Map(snapshot.claims.map((claim) => [objectKey(claim), claim]));
  const outcomes = new Map([...claims].map(([key, claim]) => [key, outcomeOf(claim, rigs, nowMs)]));
  grant({ ...snapshot, rigs, owners, nodes, claims, outcomes, nowMs });

  const evict: Eviction[] = [];
  const refused: Eviction[] = [];
  const ungate: Ungating[] = [];
  const inUse = new Set<string>();
  for (const pod of snapshot.pods) {
    const name = claimNameOf(pod);
    if (name === undefined) continue;
    const key = `${pod.metadata?.namespace ?? ''}/${name}`;
    const outcome = outcomes.get(key);
    if (isUsing(pod)) {
      inUse.add(key);
      if (outcome?.phase !== 'Granted' && !isEndingSoon(pod)) evict.push({ pod, ...evictionOf(name, outcome) });
    } else if (outcome?.phase === 'Granted' && isGated(pod, name)) {
      const foreign = foreignFixtures(pod, outcome.rig, owners);
      const node = nodes.get(outcome.rig ?? '');
      const hostname = node?.metadata?.labels?.[HOSTNAME];
      const selected = pod.spec?.nodeSelector?.[HOSTNAME];
      if (foreign.length > 0)
        refused.push({
          pod,
          reason: 'FixtureOfOtherRig',
          message: `fixtures ${foreign.join(', ')} do not belong to rig ${outcome.rig}; remove them from the pod`,
        });
      else if (hostname !== undefined && (selected ?? hostname) !== hostname)
        refused.push({
          pod,
          reason: 'OtherNodeSelected',
          message:
            `spec.nodeSelector: rig ${outcome.rig} is not on the node with ${HOSTNAME}=${selected}; ` +
            'remove the label',
        });
      else
        ungate.push({
          pod,
          gate: gateOf(name),
          nodeSelector: hostname === undefined ? {} : { [HOSTNAME]: hostname },
        });
    }
  }
  const expiries = [...outcomes.values()].flatMap(({ phase, expiresAt }) =>
    phase === 'Granted' ? [timeMs(expiresAt)] : [],
  );
  return {
    claims: new Map([...outcomes].map(([key, outcome]) => [key, statusOf(claims.get(key) ?? {}, outcome, nowMs)])),
    rigs: new Map([...rigs].map(([name, rig]) => [name, rigStatus(rig, nodes.get(name), claims, outcomes, nowMs)])),
    evict,
    ungate,
    refused,
    release: [...claims.values()].filter(
      (claim) =>
        claim.metadata?.deletionTimestamp !== undefined &&
        claim.metadata.finalizers?.includes(RELEASE_FINALIZER) === true &&
        !inUse.has(objectKey(claim)),
    ),
    nextMs: expiries.length === 0 ? undefined : Math.min(...expiries),
  };
}

/** Whether the pod is being deleted with a grace period that an eviction would not shorten. */
const isEndingSoon = ({ metadata }: Pod): boolean =>
  metadata?.deletionTimestamp !== undefined && (metadata.deletionGracePeriodSeconds ?? 0) <= EVICTION_GRACE_SECONDS;

/** Outcome for a claim before free rigs are granted in this plan. */
function outcomeOf({ metadata, status = {}, spec }: RigClaim, rigs: ReadonlyMap<string, Rig>, nowMs: number): Outcome {
  const { phase = 'Queued', rig, grantedAt, expiresAt } = status;
  const had = {
    ...(rig === undefined ? {} : { rig }),
    ...(grantedAt === undefined ? {} : { grantedAt }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
    position: 0,
  };
  if (phase === 'Expired')
    return { ...had, phase, reason: 'LeaseExpired', message: `the lease of rig ${rig ?? ''} has ended` };
  if (phase === 'Released' || metadata?.deletionTimestamp !== undefined)
    return { ...had, phase: 'Released', reason: 'Released', message: 'the claim was released' };
  if (phase === 'Queued') return { position: 0, phase, reason: 'Queued', message: waitingMessage(spec) };
  if (rig === undefined || !rigs.has(rig))
    return { ...had, phase: 'Released', reason: 'RigDeleted', message: `rig ${rig ?? ''} was deleted` };
  if (timeMs(expiresAt) <= nowMs)
    return { ...had, phase: 'Expired', reason: 'LeaseExpired', message: `the lease of rig ${rig} has ended` };
  return { ...had, phase, reason: 'Granted', message: `rig ${rig} is granted until ${expiresAt ?? ''}` };
}

const waitingMessage = (spec: RigClaim['spec']): string =>
  spec?.rigName === undefined ? 'no rig has the labels of the selector' : `rig ${spec.rigName} does not exist`;

interface Granting {
  readonly pods: readonly Pod[];
  readonly deviceClaims: readonly ResourceClaim[];
  readonly rigs: ReadonlyMap<string, Rig>;
  readonly owners: ReadonlyMap<string, ReadonlySet<string>>;
  readonly nodes: ReadonlyMap<string, Node | undefined>;
  readonly claims: ReadonlyMap<string, RigClaim>;
  /** Outcomes by claim key. They are modified in place. */
  readonly outcomes: Map<string, Outcome>;
  readonly nowMs: number;
}

function grant(granting: Granting): void {
  const { rigs, owners, nodes, claims, outcomes, pods, nowMs } = granting;
  const claimed = claimedRigs(granting);
  const holders = new Map<string, RigClaim>();
  for (const [key, { phase, rig = '' }] of outcomes) {
    const claim = claims.get(key);
    if (phase === 'Granted' && claim !== undefined) holders.set(rig, claim);
  }
  const users = usersOfRigs(pods, owners, outcomes);
  const left = claimsOfPods(pods);
  const sharing = rigsWithSharedFixtures(rigs);
  const busyOf = (name: string): readonly string[] =>
    [...(sharing.get(name) ?? [])].filter((other) => holders.has(other) || users.has(other));
  for (const name of byOldestClaim(granting)) {
    const rig = rigs.get(name) ?? {};
    if (holders.has(name) || users.has(name) || claimed.has(name) || nodes.get(name) === undefined) continue;
    if (busyOf(name).length > 0) continue;
    if (rig.metadata?.deletionTimestamp !== undefined) continue;
    const [first] = fairOrder(waitingFor(rig, claims, outcomes), undefined).filter(
      (each) => !left.has(objectKey(each)),
    );
    if (first === undefined) continue;
    const untilMs = nowMs + leaseMs(rig, first);
    const expiresAt = timestamp(untilMs);
    holders.set(name, first);
    outcomes.set(objectKey(first), {
      phase: 'Granted',
      reason: 'Granted',
      rig: name,
      grantedAt: timestamp(nowMs),
      expiresAt,
      position: 0,
      message: `rig ${name} is granted until ${expiresAt}`,
    });
  }
  for (const [name, rig] of rigs) {
    const holder = holders.get(name);
    const waiting = fairOrder(
      waitingFor(rig, claims, outcomes),
      holder === undefined ? undefined : requesterOf(holder),
    );
    for (const [index, claim] of waiting.entries()) {
      const outcome = outcomes.get(objectKey(claim));
      if (outcome === undefined || (outcome.position > 0 && outcome.position <= index + 1)) continue;
      outcome.position = index + 1;
      outcome.message =
        nodes.get(name) === undefined
          ? `no node has all fixtures of rig ${name}; plug them in or correct spec.fixtures`
          : `place ${index + 1} in the queue of rig ${name}${claimed.get(name) ?? busyText(busyOf(name))}`;
    }
  }
}

/**
 * Claims that running pods reference. While such a claim waits, the pods belong to a deleted claim with the same name.
 * The claim is granted after they have terminated; otherwise they would count as its own pods and would not be evicted.
 */
function claimsOfPods(pods: readonly Pod[]): ReadonlySet<string> {
  const found = new Set<string>();
  for (const pod of pods) {
    const name = claimNameOf(pod);
    if (name !== undefined && isUsing(pod)) found.add(`${pod.metadata?.namespace ?? ''}/${name}`);
  }
  return found;
}

const busyText = ([rig]: readonly string[]): string => (rig === undefined ? '' : `; a fixture is in use by rig ${rig}`);

/**
 * Names of the rigs in the order in which they are granted. Of rigs that share a fixture, the one with the claim that
 * has waited longest is first, so that no queue waits forever.
 */
function byOldestClaim({ rigs, claims, outcomes }: Granting): string[] {
  const oldest = new Map(
    [...rigs].map(([name, rig]) => {
      const created = waitingFor(rig, claims, outcomes).map(({ metadata }) => timeMs(metadata?.creationTimestamp));
      return [name, Math.min(...created)] as const;
    }),
  );
  const ageOf = (name: string): number => oldest.get(name) ?? Number.POSITIVE_INFINITY;
  return [...rigs.keys()].sort().sort((a, b) => (ageOf(a) === ageOf(b) ? 0 : ageOf(a) - ageOf(b)));
}

/** Rigs with a fixture that is allocated to a ResourceClaim. The value is a text for the status of waiting claims. */
function claimedRigs({ rigs, nodes, deviceClaims }: Granting): ReadonlyMap<string, string> {
  const held = new Map(
    deviceClaims.flatMap((claim) =>
      claimedFixtures(claim).map(({ node, device }) => [`${node}/${device}`, objectKey(claim)] as const),
    ),
  );
  const claimed = new Map<string, string>();
  for (const [name, { spec }] of held.size === 0 ? [] : rigs) {
    for (const { fixture = '' } of spec?.fixtures ?? []) {
      const claim = held.get(`${nodes.get(name)?.metadata?.name}/${fixtureDeviceName(fixture)}`);
      if (claim !== undefined) claimed.set(name, `; fixture ${fixture} is allocated to ResourceClaim ${claim}`);
    }
  }
  return claimed;
}

/**
 * Rigs that running pods still use, by name. The claim alone does not determine them: a pod of a deleted claim keeps
 * its fixtures while a new claim with the same name is granted another rig.
 */
function usersOfRigs(
  pods: readonly Pod[],
  owners: ReadonlyMap<string, ReadonlySet<string>>,
  outcomes: ReadonlyMap<string, Outcome>,
): ReadonlySet<string> {
  const users = new Set<string>();
  for (const pod of pods) {
    if (!isUsing(pod)) continue;
    const claim = claimNameOf(pod);
    const rig = claim === undefined ? undefined : outcomes.get(`${pod.metadata?.namespace ?? ''}/${claim}`)?.rig;
    if (rig !== undefined) users.add(rig);
    for (const fixture of fixturesOf(pod)) for (const name of owners.get(fixture) ?? []) users.add(name);
  }
  return users;
}

function waitingFor(
  { metadata }: Rig,
  claims: ReadonlyMap<string, RigClaim>,
  outcomes: ReadonlyMap<string, Outcome>,
): RigClaim[] {
  return [...claims].flatMap(([key, claim]) => {
    if (outcomes.get(key)?.phase !== 'Queued') return [];
    const { rigName, selector } = claim.spec ?? {};
    const wanted =
      rigName === undefined
        ? selector !== undefined && matchesLabels(labelSelectorOf(selector), metadata?.labels)
        : rigName === metadata?.name;
    return wanted ? [claim] : [];
  });
}

function leaseMs({ spec: rig }: Rig, { spec }: RigClaim): number {
  const longest = parseDuration(rig?.maxLease ?? DEFAULT_LEASE) ?? 0;
  return Math.min(parseDuration(spec?.duration ?? '') ?? longest, longest);
}

/**
 * Node that has all fixtures of the rig. If the rig specifies a node, only this node is considered. If several nodes
 * report the fixtures, the node of the last plan is kept while it is ready: another node could report the fixtures
 * falsely and would get the rig's console and power.
 */
function nodeOf({ spec, status: before }: Rig, nodes: readonly Node[]): Node | undefined {
  const names = (spec?.fixtures ?? []).map(({ fixture }) => `${FIXTURE_PREFIX}${fixture}`);
  const fitting = nodes.filter(
    ({ metadata, status }) =>
      (spec?.node === undefined || spec.node === metadata?.name) &&
      names.every((name) => Object.hasOwn(status?.capacity ?? {}, name)),
  );
  const ready = fitting.filter(isReady);
  const usable = ready.length > 0 ? ready : fitting;
  return usable.find(({ metadata }) => metadata?.name === before?.node) ?? usable[0];
}

export const isReady = ({ status }: Node): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;

function evictionOf(claim: string, outcome: Outcome | undefined): Omit<Eviction, 'pod'> {
  if (outcome === undefined)
    return { reason: 'RigClaimDeleted', message: `RigClaim ${claim} does not exist; create it to use the rig again` };
  const reason = outcome.phase === 'Expired' ? 'RigLeaseExpired' : 'RigReleased';
  return { reason, message: `RigClaim ${claim}: ${outcome.message}; create a claim to use the rig again` };
}

function statusOf(claim: RigClaim, outcome: Outcome, nowMs: number): NonNullable<RigClaim['status']> {
  const { phase, reason, message, rig, grantedAt, expiresAt, position } = outcome;
  const status = phase === 'Granted' ? 'True' : 'False';
  const before = claim.status?.conditions?.find(({ type }) => type === 'Granted');
  const condition: Condition = {
    type: 'Granted',
    status,
    reason,
    message,
    lastTransitionTime: transitionTime(before, status, timestamp(nowMs)),
  };
  return {
    phase,
    ...omitUndefined({ requester: claim.status?.requester }),
    ...omitEmpty({ position }),
    ...omitUndefined({ rig, grantedAt, expiresAt }),
    conditions: [condition],
  };
}

function rigStatus(
  rig: Rig,
  node: Node | undefined,
  claims: ReadonlyMap<string, RigClaim>,
  outcomes: ReadonlyMap<string, Outcome>,
  nowMs: number,
): NonNullable<Rig['status']> {
  const [holding] = [...outcomes].filter(
    ([, { phase, rig: granted }]) => phase === 'Granted' && granted === rig.metadata?.name,
  );
  const holder = holding === undefined ? undefined : claims.get(holding[0]);
  const queue = waitingFor(rig, claims, outcomes).length;
  const history = historyOf(rig, claims, outcomes, { now: timestamp(nowMs), node: node?.metadata?.name });
  return {
    ...omitUndefined({ node: node?.metadata?.name, holder: holder === undefined ? undefined : holderOf(holder) }),
    ...omitEmpty({ queue }),
    ...omitUndefined({ expiresAt: holding?.[1].expiresAt }),
    ...omitEmpty({ history: [...history] }),
  };
}

function holderOf({ metadata, status }: RigClaim): NonNullable<NonNullable<Rig['status']>['holder']> {
  return {
    namespace: metadata?.namespace ?? '',
    name: metadata?.name ?? '',
    ...(status?.requester === undefined ? {} : { requester: status.requester }),
  };
}
