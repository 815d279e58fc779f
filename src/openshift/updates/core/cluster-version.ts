/**
 * The ClusterVersion: the requested update and the status. Source: openshift/api config/v1 ClusterVersion; texts and
 * reasons of openshift/cluster-version-operator of release 4.10.
 */

import type { WantedUpdate } from '../../../api/kinds/nodes/nodes/host-report.ts';
import { transitionTime } from '../../../api/meta/conditions.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { compareReleases, isMinorChange } from '../../../base/versions/release-version.ts';
import { apiServerSkew } from '../../../base/versions/version-skew.ts';
import type {
  ClusterOperator,
  ClusterVersion,
  ClusterVersionStatus,
  ConditionStatus,
  OperatorCondition,
  Release,
  UpdateHistory,
} from '../../operators/kinds/config/types.ts';
import { planRollout, type RolloutHost, type RolloutStep } from './rollout.ts';

/** An abandoned update: generation of the spec that requested it, and the reason. A new generation permits a retry. */
export interface GivenUp {
  readonly generation: number;
  readonly version: string;
  readonly message: string;
}

export interface KnownRelease {
  readonly version: string;
  readonly kubernetes: string;
  readonly channels: readonly string[];
  readonly architectures: readonly string[];
  /** SHA-256 of the manifest. */
  readonly manifest: string;
  readonly image: string;
}

export interface VersionInput {
  readonly object: ClusterVersion;
  readonly givenUp: GivenUp | undefined;
  readonly hosts: readonly RolloutHost[];
  readonly architectures: readonly string[];
  readonly operators: readonly ClusterOperator[];
  /** Imported releases with a trusted signature. */
  readonly releases: readonly KnownRelease[];
  /** Version of the leader, which is assumed for the cluster if no other information exists. */
  readonly own: { readonly version: string; readonly kubernetes: string };
  readonly nowMs: number;
}

export interface VersionPlan {
  readonly status: ClusterVersionStatus;
  /** Host to update next. */
  readonly hostRequest: { readonly host: string; readonly wanted: WantedUpdate } | undefined;
  /** Set if this call abandons the update. */
  readonly givenUp: GivenUp | undefined;
  /** Version to which hosts are being updated, if any. */
  readonly updatingTo: string | undefined;
}

/** Maximum number of history entries, as in upstream. */
const MAX_HISTORY = 100;

interface Finding {
  readonly reason: string;
  readonly message: string;
}

export function planVersion(input: VersionInput): VersionPlan {
  const { object, nowMs } = input;
  const generation = object.metadata?.generation ?? 1;
  const before = object.status?.history ?? [];
  const current = currentVersion(input);
  const refused = refusal(input, current);
  const target = refused === undefined ? targetOf(input, generation, current) : undefined;
  const step =
    target === undefined ? undefined : planRollout(hostsOf(input, target), target.wanted, ignoresFaults(input, target));
  const givenUp =
    step?.step === 'failed' && target !== undefined && !target.back
      ? { generation, version: target.wanted.version, message: `host ${step.host}: ${step.message}` }
      : input.givenUp;
  const desired = target?.release ?? releaseOf(input, current);
  const completed = step === undefined || step.step === 'done';
  const history = historyOf(before, desired, {
    completed,
    verified: target !== undefined && !target.back,
    // Until the request is completed, hosts that an earlier, stopped update left at another version are also updated.
    repeated: object.spec?.desiredUpdate?.force === true && object.status?.observedGeneration !== generation,
    nowMs,
  });
  const failing = refused ?? updateFailure(step, target, input.givenUp, generation) ?? operatorFailure(input.operators);
  const status: ClusterVersionStatus = {
    desired,
    history,
    observedGeneration: generation,
    versionHash: hashOf(`${desired.version} ${desired.image}`),
    conditions: conditions(input, { failing, step, desired, history }),
    availableUpdates: available(input, current),
  };
  const hostRequest =
    step?.step === 'begin' && target !== undefined ? { host: step.host, wanted: target.wanted } : undefined;
  return { status, hostRequest, givenUp, updatingTo: completed ? undefined : target?.wanted.version };
}

/** The version of the last completed update, or the version of all hosts if they were updated manually. */
function currentVersion(input: VersionInput): string {
  const completed = (input.object.status?.history ?? []).find(({ state }) => state === 'Completed')?.version;
  const only = commonVersion(input);
  if (only !== undefined && wantedVersion(input) === '') return only;
  return completed ?? only ?? input.own.version;
}

/** Version of all hosts. Undefined if hosts have different versions, or if no host has reported a version. */
function commonVersion({ hosts }: VersionInput): string | undefined {
  const versions = new Set(hosts.flatMap(({ version }) => (version === '' ? [] : [version])));
  return versions.size === 1 ? [...versions][0] : undefined;
}

/**
 * Version of spec.desiredUpdate. Empty if no update is desired, or if after its completion all hosts were updated
 * manually to a newer version.
 */
function wantedVersion(input: VersionInput): string {
  const { version = '', image = '' } = input.object.spec?.desiredUpdate ?? {};
  if (version === '') return input.releases.find((each) => each.image === image)?.version ?? image;
  const only = commonVersion(input);
  return isSettled(input, version) && only !== undefined && compareReleases(only, version) > 0 ? '' : version;
}

/** Whether the update to `version` has been completed before. */
function isSettled({ object }: VersionInput, version: string): boolean {
  const { observedGeneration, history = [] } = object.status ?? {};
  const seen = observedGeneration === (object.metadata?.generation ?? 1) && history[0]?.state === 'Completed';
  return seen && history.some((each) => each.state === 'Completed' && each.version === version);
}

interface Target {
  readonly wanted: WantedUpdate;
  readonly release: Release;
  /** True if the target is the version before a failed update. */
  readonly back: boolean;
}

/** Hosts to update. After completion, hosts that were updated manually to a newer version are excluded. */
function hostsOf(input: VersionInput, { wanted, back }: Target): readonly RolloutHost[] {
  if (back || !isSettled(input, wanted.version)) return input.hosts;
  return input.hosts.filter(({ version }) => compareReleases(version, wanted.version) <= 0);
}

/** A return to a former release and a forced update also proceed while the present release makes hosts unhealthy. */
const ignoresFaults = ({ object }: VersionInput, { back }: Target): boolean =>
  back || object.spec?.desiredUpdate?.force === true;

function targetOf(input: VersionInput, generation: number, current: string): Target | undefined {
  const version = wantedVersion(input);
  if (input.givenUp?.generation === generation) {
    const former = formerVersion(input, current, input.givenUp.version);
    const manifest = input.releases.find((each) => each.version === former)?.manifest ?? '';
    const wanted = { id: `${generation}-back`, version: former, manifest };
    return { wanted, release: releaseOf(input, former), back: true };
  }
  const known = input.releases.find((each) => each.version === version);
  if (known === undefined) return undefined;
  const wanted = { id: String(generation), version, manifest: known.manifest };
  return { wanted, release: releaseOf(input, version), back: false };
}

/**
 * Version to return to after an abandoned update. If a host rolled the update back after its completion, the abandoned
 * version is the current one; the result is then the version that was completed before.
 */
function formerVersion({ object }: VersionInput, current: string, abandoned: string): string {
  if (current !== abandoned) return current;
  const completed = (object.status?.history ?? []).filter(({ state }) => state === 'Completed');
  return completed.find(({ version }) => version !== abandoned)?.version ?? current;
}

/** Reason why the desired update is not started. It is not evaluated for an update that has started. */
function refusal(input: VersionInput, current: string): Finding | undefined {
  const { image = '', force = false } = input.object.spec?.desiredUpdate ?? {};
  const version = wantedVersion(input);
  const generation = input.object.metadata?.generation ?? 1;
  if (version === '' || input.givenUp?.generation === generation) return undefined;
  const [latest] = input.object.status?.history ?? [];
  if (version === current || (latest?.version === version && latest.state === 'Partial')) return undefined;
  const known = input.releases.find((each) => each.version === version);
  if (known === undefined || (image !== '' && image !== known.image)) {
    return {
      reason: 'RetrievePayload',
      message: `desiredUpdate ${version}: the release is not imported; run hyperedge bundle import on a master`,
    };
  }
  const lacking = input.architectures.filter((each) => !known.architectures.includes(each));
  if (lacking.length > 0)
    return { reason: 'RetrievePayload', message: `release ${version} has no executable for ${lacking.join(', ')}` };
  if (force) return undefined;
  const check = (message: string): Finding => ({ reason: 'UpgradePreconditionCheckFailed', message });
  if (compareReleases(version, current) < 0)
    return check(
      `Precondition "ClusterVersionDowngrade" failed: ${version} is older than ${current}; --force overrides`,
    );
  const skew = apiServerSkew(known.kubernetes, input.own.kubernetes);
  if (skew !== undefined) return check(`Precondition "KubernetesSkew" failed: ${skew}`);
  const blocking = upgradeBlockers(input.operators);
  if (blocking !== undefined && isMinorChange(current, version))
    return check(
      `Precondition "ClusterVersionUpgradeable" failed because of "${blocking.reason}": ${blocking.message}`,
    );
  return undefined;
}

function upgradeBlockers(operators: readonly ClusterOperator[]): Finding | undefined {
  const found = operators.flatMap(({ metadata, status }) => {
    const condition = status?.conditions?.find(
      ({ type, status: value }) => type === 'Upgradeable' && value === 'False',
    );
    return condition === undefined ? [] : [{ name: metadata?.name ?? '', condition }];
  });
  const [first] = found;
  if (first === undefined) return undefined;
  const message = found
    .map(
      ({ name, condition }) =>
        `Cluster operator ${name} should not be upgraded between minor versions: ${condition.message}`,
    )
    .join('; ');
  return { reason: found.length === 1 ? (first.condition.reason ?? '') : 'ClusterOperatorsNotUpgradeable', message };
}

function updateFailure(
  step: RolloutStep | undefined,
  target: Target | undefined,
  givenUp: GivenUp | undefined,
  generation: number,
): Finding | undefined {
  if (step?.step === 'failed' && target !== undefined) {
    const what = target.back ? 'return' : 'update';
    return {
      reason: 'HostUpdateFailed',
      message: `${what} to ${target.wanted.version}: host ${step.host}: ${step.message}`,
    };
  }
  if (givenUp?.generation !== generation) return undefined;
  return { reason: 'HostUpdateFailed', message: `update to ${givenUp.version} was rolled back: ${givenUp.message}` };
}

function operatorFailure(operators: readonly ClusterOperator[]): Finding | undefined {
  const having = (type: string, value: ConditionStatus): string[] =>
    operators
      .filter(({ status }) => status?.conditions?.some((each) => each.type === type && each.status === value))
      .map(({ metadata }) => metadata?.name ?? '');
  const unavailable = having('Available', 'False');
  if (unavailable.length > 0) {
    const one = unavailable.length === 1;
    return {
      reason: one ? 'ClusterOperatorNotAvailable' : 'ClusterOperatorsNotAvailable',
      message: `Cluster operator${one ? '' : 's'} ${unavailable.join(', ')} ${one ? 'is' : 'are'} not available`,
    };
  }
  const degraded = having('Degraded', 'True');
  if (degraded.length === 0) return undefined;
  const one = degraded.length === 1;
  return {
    reason: one ? 'ClusterOperatorDegraded' : 'ClusterOperatorsDegraded',
    message: `Cluster operator${one ? '' : 's'} ${degraded.join(', ')} ${one ? 'is' : 'are'} degraded`,
  };
}

function releaseOf({ releases, object }: VersionInput, version: string): Release {
  const known = releases.find((each) => each.version === version);
  const remembered = object.status?.history?.find((each) => each.version === version)?.image;
  const image = known?.image ?? remembered ?? `hyperedge.dev/release:${version}`;
  return known === undefined || known.channels.length === 0
    ? { version, image }
    : { version, image, channels: known.channels };
}

interface Entry {
  readonly completed: boolean;
  readonly verified: boolean;
  /** True if the version is requested again. It then gets another entry if hosts must be updated. */
  readonly repeated: boolean;
  readonly nowMs: number;
}

function historyOf(
  before: readonly UpdateHistory[],
  desired: Release,
  { completed, verified, repeated, nowMs }: Entry,
): readonly UpdateHistory[] {
  const at = timestamp(nowMs);
  const [latest, ...older] = before;
  const isAgain = repeated && !completed && latest?.state === 'Completed';
  if (latest !== undefined && latest.version === desired.version && !isAgain) {
    if (latest.state === 'Completed' || !completed) return before;
    return [{ ...latest, state: 'Completed', completionTime: at }, ...older];
  }
  const entry: UpdateHistory = {
    state: completed ? 'Completed' : 'Partial',
    startedTime: at,
    completionTime: completed ? at : null,
    version: desired.version,
    image: desired.image,
    verified,
  };
  // The API server removes nulls, so an earlier entry may lack its completionTime.
  const ended = before.map((each) => ({ ...each, completionTime: each.completionTime ?? at }));
  return [entry, ...ended].slice(0, MAX_HISTORY);
}

/** Newer releases of the channel that every host can run, newest first. */
function available({ releases, object, architectures, own }: VersionInput, current: string): readonly Release[] | null {
  const { channel = '' } = object.spec ?? {};
  const found = releases
    .filter(
      (each) =>
        compareReleases(each.version, current) > 0 &&
        (each.channels.length === 0 || each.channels.includes(channel)) &&
        architectures.every((architecture) => each.architectures.includes(architecture)) &&
        apiServerSkew(each.kubernetes, own.kubernetes) === undefined,
    )
    .sort((a, b) => compareReleases(b.version, a.version))
    .map(({ version, image, channels }) => (channels.length === 0 ? { version, image } : { version, image, channels }));
  return found.length === 0 ? null : found;
}

interface Shown {
  readonly failing: Finding | undefined;
  readonly step: RolloutStep | undefined;
  readonly desired: Release;
  readonly history: readonly UpdateHistory[];
}

function conditions(input: VersionInput, { failing, step, desired, history }: Shown): OperatorCondition[] {
  const { object, nowMs, operators } = input;
  const previous = object.status?.conditions ?? [];
  const make = (type: string, status: ConditionStatus, { reason, message }: Partial<Finding>): OperatorCondition => {
    const old = previous.find((each) => each.type === type);
    return {
      type,
      status,
      lastTransitionTime: transitionTime(old, status, timestamp(nowMs)),
      ...(reason === undefined ? {} : { reason }),
      ...(message === undefined ? {} : { message }),
    };
  };
  const done = history.find(({ state }) => state === 'Completed');
  const blocking = upgradeBlockers(operators);
  return [
    done === undefined
      ? make('Available', 'False', {})
      : make('Available', 'True', { message: `Done applying ${done.version}` }),
    failing === undefined ? make('Failing', 'False', {}) : make('Failing', 'True', failing),
    make('Progressing', isProgressing(step) ? 'True' : 'False', progress(step, desired, failing)),
    blocking === undefined ? make('Upgradeable', 'True', {}) : make('Upgradeable', 'False', blocking),
    make('RetrievedUpdates', 'True', {}),
  ];
}

const isProgressing = (step: RolloutStep | undefined): boolean => step?.step === 'begin' || step?.step === 'wait';

function progress(step: RolloutStep | undefined, { version }: Release, failing: Finding | undefined): Partial<Finding> {
  if (step?.step === 'begin' || step?.step === 'wait') {
    const percent = step.of === 0 ? 0 : Math.floor((step.updated / step.of) * 100);
    const what = step.step === 'wait' ? step.message : `updating ${step.host}`;
    return {
      message: `Working towards ${version}: ${step.updated} of ${step.of} hosts done (${percent}% complete), ${what}`,
    };
  }
  if (failing !== undefined) {
    return { reason: failing.reason, message: `Error while reconciling ${version}: ${failing.message}` };
  }
  const skipped = step?.step === 'done' && step.skipped.length > 0 ? `; paused: ${step.skipped.join(', ')}` : '';
  return { message: `Cluster version is ${version}${skipped}` };
}

/** FNV-1a hash, which detects changed content. It is not cryptographic. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5;
  for (const each of text) hash = Math.imul(hash ^ (each.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, '0');
}
