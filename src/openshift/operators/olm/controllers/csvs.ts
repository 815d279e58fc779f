/** Moves operator versions through their phases. The phases are decided in openshift/operators/olm/core/phases.ts. */

import { isApiError } from '../../../../api/meta/status.ts';
import { resources } from '../../../../api/resources.ts';
import { messageOf } from '../../../../base/errors.ts';
import { ignoreNotFound } from '../../../../controllers/framework/ignore-not-found.ts';
import {
  CLEANUP_FINALIZER,
  COPIED_LABEL,
  groupOf,
  type Health,
  isProblem,
  type NextPhase,
  nextPhase,
  OPERATOR_GROUP,
  OPERATOR_NAMESPACE,
  packageOf,
  statusAfter,
  TARGET_NAMESPACES,
  unsupportedMode,
} from '../core/index.ts';
import type { ClusterServiceVersion, OperatorGroup, RequirementStatus } from '../kinds/types.ts';
import { cleanUp } from './cleanup.ts';
import type { Olm } from './context.ts';
import { copyToTargets, isWantedCopy } from './copies.ts';
import { InstallStrategy, type StrategyContext } from './install-strategy.ts';
import { readRequirements } from './requirements.ts';

/**
 * Polling intervals by phase. Polling is required because most of the awaited changes are not observed by informers
 * here.
 */
const AGAIN_MS: Readonly<Record<string, number>> = {
  Pending: 1_000,
  InstallReady: 100,
  Installing: 2_000,
  Failed: 10_000,
};
/** Polling interval in other phases, which detects expired certificates and deleted custom resource definitions. */
const RESYNC_MS = 5 * 60_000;
const CHECKED: ReadonlySet<string> = new Set(['', 'Pending', 'Succeeded', 'Failed']);
const NOTHING: Health = { applied: false, ready: false, message: '' };

export class CsvPart {
  readonly #olm: Olm;
  readonly #strategy: InstallStrategy;

  constructor(olm: Olm) {
    this.#olm = olm;
    this.#strategy = new InstallStrategy(olm);
  }

  /** Returns the milliseconds until the next check, or undefined if only a change of an object requires one. */
  async reconcile(key: string): Promise<number | undefined> {
    const { informers, handle } = this.#olm;
    const csv = informers.csvs.get(key);
    if (csv === undefined) return undefined;
    const client = handle.writer(resources.clusterServiceVersions);
    const { name = '', namespace = '' } = csv.metadata ?? {};
    if (csv.metadata?.labels?.[COPIED_LABEL] !== undefined) {
      if (!isWantedCopy(this.#olm, csv)) await this.#remove(csv);
      return undefined;
    }
    if (csv.metadata?.deletionTimestamp !== undefined) {
      if (csv.metadata.finalizers?.includes(CLEANUP_FINALIZER)) await cleanUp(this.#olm, csv);
      return undefined;
    }
    const group = groupOf(informers.groups.list(namespace));
    const targets = isProblem(group) ? [] : group.status?.namespaces;
    // The status of the operator group is missing, so wait until the group has been reconciled.
    if (targets === undefined) return AGAIN_MS['Pending'];
    const marks = isProblem(group) ? {} : marksOf(group, targets);
    if (!isMarked(csv, marks)) {
      const finalizers = [...new Set([...(csv.metadata?.finalizers ?? []), CLEANUP_FINALIZER])];
      await ignoreNotFound(() =>
        client.patch(name, namespace, 'merge', { metadata: { finalizers, annotations: marks } }),
      );
      return undefined;
    }
    const next = await this.#next(csv, group, targets);
    await this.#write(csv, next.phase, next.requirements);
    if (next.phase.remove) await this.#remove(csv);
    if (next.phase.phase === 'Succeeded') await copyToTargets(this.#olm, csv, targets);
    return AGAIN_MS[next.phase.phase] ?? RESYNC_MS;
  }

  async #next(
    csv: ClusterServiceVersion,
    group: ReturnType<typeof groupOf>,
    targets: readonly string[],
  ): Promise<{ readonly phase: NextPhase; readonly requirements: readonly RequirementStatus[] }> {
    const { informers, handle } = this.#olm;
    const { name = '', namespace = '' } = csv.metadata ?? {};
    const others = informers.csvs
      .list(namespace)
      .filter((each) => each !== csv && each.metadata?.labels?.[COPIED_LABEL] === undefined);
    const unsupported = isProblem(group) ? undefined : unsupportedMode(csv, namespace, targets);
    const problem = isProblem(group)
      ? group
      : unsupported === undefined
        ? undefined
        : { reason: 'UnsupportedOperatorGroup', message: unsupported };
    const { phase: before = '' } = csv.status ?? {};
    const checked = problem === undefined && CHECKED.has(before);
    const found = checked ? await readRequirements(this.#olm, csv) : undefined;
    const requirements = found?.statuses ?? csv.status?.requirementStatus ?? [];
    const context: StrategyContext = {
      csv,
      group: isProblem(group) ? undefined : group,
      targets,
      config: this.#configOf(csv),
    };
    const runs = problem === undefined && before !== '' && before !== 'Replacing' && before !== 'Deleting';
    const snapshot = {
      csv,
      problem,
      requirements,
      requirementsMet: found?.met ?? true,
      successor: others.find(
        ({ spec, metadata }) => spec?.replaces === name && metadata?.deletionTimestamp === undefined,
      ),
      predecessor: others.find(({ metadata }) => metadata?.name === csv.spec?.replaces),
      notUpgradeable: this.#notUpgradeable(csv, others),
      conflict: conflictOf(csv, others),
      failForward: !isProblem(group) && group.spec?.upgradeStrategy === 'TechPreviewUnsafeFailForward',
      health: runs ? await this.#strategy.health(context) : NOTHING,
      nowMs: handle.clock.nowMs(),
    };
    const phase = nextPhase(snapshot);
    if (!phase.install) return { phase, requirements };
    try {
      await this.#strategy.apply(context);
      return { phase, requirements };
    } catch (error) {
      if (!isApiError(error) || error.reason === 'Conflict' || error.httpCode >= 500 || error.httpCode === 429)
        throw error;
      const failed = {
        ...phase,
        phase: 'Failed',
        reason: 'InstallComponentFailed',
        message: `install strategy failed: ${messageOf(error)}`,
      };
      return { phase: failed, requirements };
    }
  }

  async #write(csv: ClusterServiceVersion, next: NextPhase, requirements: readonly RequirementStatus[]): Promise<void> {
    const { handle, now } = this.#olm;
    const status = statusAfter(csv, next, requirements, now());
    if (status === undefined) return;
    await ignoreNotFound(() =>
      handle.writer(resources.clusterServiceVersions).update({ ...csv, status }, { subresource: 'status' }),
    );
    if (csv.status?.phase === next.phase && csv.status.reason === next.reason) return;
    const type = next.phase === 'Failed' ? 'Warning' : 'Normal';
    handle.recorder.event(csv, type, next.reason, next.message);
  }

  async #remove({ metadata }: ClusterServiceVersion): Promise<void> {
    const { name = '', namespace } = metadata ?? {};
    await ignoreNotFound(() => this.#olm.handle.writer(resources.clusterServiceVersions).delete(name, namespace));
  }

  #configOf(csv: ClusterServiceVersion) {
    const { name, namespace } = csv.metadata ?? {};
    const owner = packageOf(csv);
    const subscription = this.#olm.informers.subscriptions
      .list(namespace)
      .find(({ spec, status }) => status?.currentCSV === name || status?.installedCSV === name || spec?.name === owner);
    return subscription?.spec?.config ?? {};
  }

  /**
   * Message of the replaced operator version if it reports that it cannot be upgraded now; undefined otherwise, or if
   * an administrator has overridden the report.
   */
  #notUpgradeable(
    { spec, metadata }: ClusterServiceVersion,
    others: readonly ClusterServiceVersion[],
  ): string | undefined {
    const replaced = others.find((each) => each.metadata?.name === spec?.replaces);
    if (replaced === undefined) return undefined;
    const condition = this.#olm.informers.conditions.get(`${metadata?.namespace}/${replaced.metadata?.name}`);
    const isUpgradeable = ({ type }: { readonly type: string }): boolean => type === 'Upgradeable';
    const found =
      condition?.spec?.overrides?.find(isUpgradeable) ??
      condition?.spec?.conditions?.find(isUpgradeable) ??
      condition?.status?.conditions?.find(isUpgradeable);
    if (found?.status !== 'False') return undefined;
    return `The operator is not upgradeable: ${found.message || found.reason}`;
  }
}

function marksOf(group: OperatorGroup, targets: readonly string[]): Record<string, string> {
  return {
    [OPERATOR_GROUP]: group.metadata?.name ?? '',
    [OPERATOR_NAMESPACE]: group.metadata?.namespace ?? '',
    [TARGET_NAMESPACES]: targets.join(','),
  };
}

const isMarked = ({ metadata }: ClusterServiceVersion, marks: Readonly<Record<string, string>>): boolean =>
  metadata?.finalizers?.includes(CLEANUP_FINALIZER) === true &&
  Object.entries(marks).every(([key, value]) => metadata?.annotations?.[key] === value);

/**
 * Error message if another operator version owns the same kind and neither replaces the other. Both operators would
 * modify the same objects.
 */
function conflictOf(csv: ClusterServiceVersion, others: readonly ClusterServiceVersion[]): string | undefined {
  const own = new Set((csv.spec?.customresourcedefinitions?.owned ?? []).map(({ name }) => name));
  for (const other of others) {
    const related = other.spec?.replaces === csv.metadata?.name || csv.spec?.replaces === other.metadata?.name;
    if (related || other.status?.phase === 'Replacing' || other.status?.phase === 'Deleting') continue;
    const shared = (other.spec?.customresourcedefinitions?.owned ?? []).find(({ name }) => own.has(name));
    if (shared !== undefined && (other.metadata?.creationTimestamp ?? '') <= (csv.metadata?.creationTimestamp ?? ''))
      return `owner conflict: ${shared.name} is owned by ${other.metadata?.name}`;
  }
  return undefined;
}
