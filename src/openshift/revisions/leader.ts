/**
 * Plans the revisions of the control plane and writes them to the API. Every master runs a RevisionLeader. It holds the
 * Lease only while it writes, so an idle cluster renews no Lease.
 */

import type { ConfigMap, Node, Pod } from '../../api/generated/core/v1.ts';
import { semanticEqual } from '../../api/meta/equality.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { ApiClient, EventRecorder, Informer, InformerFactory } from '../../client/types.ts';
import type { StaticPodOperator } from '../operators/kinds/operator/index.ts';
import { recordTransition, type Transition } from '../operators/transition-events-port.ts';
import {
  keepLimit,
  type MasterFacts,
  planRevisions,
  type Revision,
  type RevisionPlan,
  type RevisionState,
} from './core/index.ts';
import { creationEvents, progressEvents } from './events.ts';
import { OPERANDS, type Operand } from './port.ts';
import {
  namespaceOf,
  OPERATOR_NAME,
  OPERATOR_VERSION,
  operatorType,
  overlayOf,
  POD_LABEL,
  type PodPhase,
  podsOf,
  progressOf,
  REPORT_LABEL,
  REVISION_LABEL,
  reportsOf,
  revisionMap,
  revisionMapName,
  revisionOf,
  revisionOfPod,
  shownPod,
  statusOf,
} from './revision-objects.ts';

export interface LeaderOptions {
  readonly informers: InformerFactory;
  readonly host: string;
  /** Runs `work` with a client whose writes fail when the Lease is lost. */
  readonly exclusively: (work: (client: ApiClient) => Promise<void>) => Promise<void>;
  readonly recorder: EventRecorder;
  /** Called when an operator object or a published revision has changed. */
  readonly changed: () => void;
  /** Image shown in installer pods. */
  readonly image: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Delay per rank. The master with rank 0 acts immediately; a later one acts only if the work is still due. */
const STAGGER_MS = 4_000;
const SETTLE_MS = 100;
const RETRY_MS = 2_000;

export class RevisionLeader {
  readonly #options: LeaderOptions;
  readonly #operators: ReadonlyMap<Operand, Informer<StaticPodOperator>>;
  readonly #reports: Informer<ConfigMap>;
  readonly #revisions: Informer<ConfigMap>;
  readonly #pods: Informer<Pod>;
  readonly #nodes: Informer<Node>;
  #timer: Timer | undefined;
  #work: Promise<void> = Promise.resolve();
  #isStopped = false;
  #waitedMs = 0;

  constructor(options: LeaderOptions) {
    const { informers } = options;
    this.#options = options;
    this.#operators = new Map(OPERANDS.map((each) => [each, informers.informer(operatorType(each))]));
    this.#reports = informers.informer(resources.configMaps, { labelSelector: REPORT_LABEL });
    this.#revisions = informers.informer(resources.configMaps, { labelSelector: REVISION_LABEL });
    this.#pods = informers.informer(resources.pods, { labelSelector: POD_LABEL });
    this.#nodes = informers.informer(resources.nodes);
    const changed = (): void => this.#schedule(SETTLE_MS);
    const handler = { added: changed, updated: changed, deleted: changed };
    const wanted = { added: options.changed, updated: options.changed };
    for (const each of [...this.#operators.values()]) {
      each.onChange(handler);
      each.onChange(wanted);
    }
    this.#revisions.onChange(wanted);
    for (const each of [this.#reports, this.#revisions, this.#pods, this.#nodes]) each.onChange(handler);
  }

  operator(operand: Operand): StaticPodOperator | undefined {
    return this.#operators.get(operand)?.get(OPERATOR_NAME);
  }

  /** Revision as published in its `revision-status-N` ConfigMap. */
  revision(operand: Operand, revision: number): Revision | undefined {
    const map = this.#revisions.get(`${namespaceOf(operand)}/${revisionMapName(revision)}`);
    return map === undefined ? undefined : revisionOf(map);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#work;
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return;
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimer(delayMs, () => {
      this.#work = this.#work.then(() => this.#round());
    });
  }

  get #hasSynced(): boolean {
    const all = [...this.#operators.values(), this.#reports, this.#revisions, this.#pods, this.#nodes];
    return all.every((each) => each.hasSynced);
  }

  async #round(): Promise<void> {
    const { clock, log, exclusively } = this.#options;
    if (!this.#hasSynced || this.#isStopped) return;
    try {
      const due = OPERANDS.filter((operand) => this.#isDue(operand));
      if (due.length === 0) {
        this.#waitedMs = 0;
        return this.#wake();
      }
      const rank = this.#rank();
      if (rank > 0 && this.#waitedMs < rank * STAGGER_MS) {
        this.#waitedMs += SETTLE_MS + STAGGER_MS;
        return this.#schedule(STAGGER_MS);
      }
      this.#waitedMs = 0;
      await exclusively(async (client) => {
        for (const operand of due) await this.#apply(client, operand);
      });
      // Check again later, because the informers receive the written objects only after a short delay.
      this.#schedule(RETRY_MS);
    } catch (error) {
      log.v(2, 'revisions not published; retrying', { error: messageOf(error), atMs: clock.nowMs() });
      this.#schedule(RETRY_MS);
    }
  }

  /** Position of this host among the Ready masters, sorted by name. The master with position 0 acts first. */
  #rank(): number {
    const names = this.#masters('kube-apiserver')
      .filter(({ notReadySinceMs }) => notReadySinceMs === undefined)
      .map(({ name }) => name)
      .sort();
    return Math.max(0, names.indexOf(this.#options.host));
  }

  #wake(): void {
    const nowMs = this.#options.clock.nowMs();
    const times = OPERANDS.flatMap((operand) => this.#plan(operand)?.wakeAtMs ?? []);
    if (times.length > 0) this.#schedule(Math.max(SETTLE_MS, Math.min(...times) - nowMs));
  }

  #masters(operand: Operand): MasterFacts[] {
    return this.#reports.list().flatMap((map) => {
      const { node, of } = reportsOf(map);
      const found = this.#nodes.get(node);
      const report = of.get(operand);
      // Only nodes that still exist count, so a host that left the cluster does not delay a revision.
      if (found === undefined || report === undefined) return [];
      const ready = found.status?.conditions?.find(({ type }) => type === 'Ready');
      const since = Date.parse(ready?.lastTransitionTime ?? found.metadata?.creationTimestamp ?? '');
      return [{ name: node, report, ...(ready?.status === 'True' ? {} : { notReadySinceMs: since }) }];
    });
  }

  #stateOf(operand: Operand): RevisionState | undefined {
    const operator = this.operator(operand);
    if (operator === undefined) return undefined;
    const { spec = {}, status = {} } = operator;
    const revisions = this.#revisions.list(namespaceOf(operand)).flatMap((map) => revisionOf(map) ?? []);
    return {
      isManaged: spec.managementState !== 'Unmanaged',
      overlay: overlayOf(operator),
      latest: status.latestAvailableRevision ?? 0,
      revisions,
      progress: progressOf(operator),
      masters: this.#masters(operand),
      keepFailed: keepLimit(spec.failedRevisionLimit),
      keepSucceeded: keepLimit(spec.succeededRevisionLimit),
    };
  }

  #plan(operand: Operand): RevisionPlan | undefined {
    const state = this.#stateOf(operand);
    return state === undefined ? undefined : planRevisions(state, this.#options.clock.nowMs());
  }

  #isDue(operand: Operand): boolean {
    const plan = this.#plan(operand);
    const operator = this.operator(operand);
    if (plan === undefined || operator === undefined) return false;
    return (
      this.#changedMaps(operand, plan).length > 0 ||
      plan.pruned.length > 0 ||
      !semanticEqual(operator.status ?? {}, statusOf(operator, plan, this.#options.clock.nowMs())) ||
      this.#changedPods(operand, plan).length > 0
    );
  }

  #changedMaps(operand: Operand, plan: RevisionPlan): Revision[] {
    return plan.revisions.filter((each) => !semanticEqual(this.revision(operand, each.revision), each));
  }

  #changedPods(operand: Operand, plan: RevisionPlan): { name: string; node: string; phase: PodPhase }[] {
    return [...podsOf(plan)].flatMap(([name, { node, phase }]) => {
      const pod = this.#pods.get(`${namespaceOf(operand)}/${name}`);
      const isOver = pod?.status?.phase === 'Succeeded' || pod?.status?.phase === 'Failed';
      const isRight = pod?.status?.phase === phase && (phase === 'Running' || pod.spec?.nodeName === node);
      return isRight || (isOver && pod?.spec?.nodeName === node) ? [] : [{ name, node, phase }];
    });
  }

  async #apply(client: ApiClient, operand: Operand): Promise<void> {
    const { log, clock } = this.#options;
    const plan = this.#plan(operand);
    const operator = this.operator(operand);
    if (plan === undefined || operator === undefined) return;
    const maps = client.resource(resources.configMaps);
    for (const each of this.#changedMaps(operand, plan)) {
      const map = revisionMap(operand, each);
      if (this.revision(operand, each.revision) === undefined) {
        log.info('revision created', { operand, revision: each.revision, reason: each.reason });
        await maps.create(map).catch(ignore('AlreadyExists'));
        this.#record(operand, operator, creationEvents(each));
      } else await maps.patch(map.metadata?.name ?? '', map.metadata?.namespace, 'merge', { data: map.data });
    }
    const status = statusOf(operator, plan, clock.nowMs());
    if (!semanticEqual(operator.status ?? {}, status)) {
      // The update fails if another leader has written a newer version since this one was read.
      await client
        .resource(operatorType(operand))
        .update({ ...structuredClone(operator), status }, { subresource: 'status' });
      const because = plan.revisions.at(-1)?.reason ?? '';
      this.#record(operand, operator, progressEvents(progressOf(operator), plan.progress, because));
    }
    for (const each of this.#changedPods(operand, plan)) await this.#show(client, operand, each);
    await this.#prune(client, operand, plan.pruned);
  }

  #record(operand: Operand, operator: StaticPodOperator, events: readonly Transition[]): void {
    const { kind } = operatorType(operand);
    const object = { ...operator, apiVersion: OPERATOR_VERSION, kind };
    const to = { object, namespace: namespaceOf(operand), component: `${operand}-operator` };
    for (const each of events) recordTransition(this.#options.recorder, to, each);
  }

  async #show(
    client: ApiClient,
    operand: Operand,
    { name, node, phase }: { readonly name: string; readonly node: string; readonly phase: PodPhase },
  ): Promise<void> {
    const { image, clock } = this.#options;
    const pods = client.resource(resources.pods);
    const namespace = namespaceOf(operand);
    const known = this.#pods.get(`${namespace}/${name}`);
    if (known === undefined) await pods.create(shownPod(operand, name, image)).catch(ignore('AlreadyExists'));
    const isOver = known?.status?.phase === 'Succeeded' || known?.status?.phase === 'Failed';
    if (!isOver && known?.status?.phase !== phase) {
      const at = timestamp(clock.nowMs());
      await pods.patch(name, namespace, 'merge', podStatus(name, phase, known, image, at), { subresource: 'status' });
    }
    // The pod is bound to its node only after it has terminated, so that no kubelet starts it.
    if (phase === 'Running' || (known?.spec?.nodeName ?? '') !== '') return;
    await pods
      .createSubresource(name, namespace, 'binding', {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name, namespace },
        target: { apiVersion: 'v1', kind: 'Node', name: node },
      })
      .catch(ignore('Conflict'));
  }

  async #prune(client: ApiClient, operand: Operand, pruned: readonly number[]): Promise<void> {
    const namespace = namespaceOf(operand);
    for (const revision of pruned) {
      await client
        .resource(resources.configMaps)
        .delete(revisionMapName(revision), namespace)
        .catch(ignore('NotFound'));
      const pods = this.#pods
        .list(namespace)
        .filter(({ metadata }) => revisionOfPod(metadata?.name ?? '') === revision);
      for (const { metadata } of pods) {
        await client
          .resource(resources.pods)
          .delete(metadata?.name ?? '', namespace, { gracePeriodSeconds: 0 })
          .catch(ignore('NotFound'));
      }
    }
  }
}

const ignore =
  (reason: 'AlreadyExists' | 'NotFound' | 'Conflict') =>
  (error: unknown): void => {
    if (!isApiError(error, reason)) throw error;
  };

function podStatus(name: string, phase: PodPhase, known: Pod | undefined, image: string, at: string): object {
  const startedAt = known?.status?.startTime ?? at;
  const state =
    phase === 'Running'
      ? { running: { startedAt } }
      : {
          terminated: {
            exitCode: phase === 'Succeeded' ? 0 : 1,
            reason: phase === 'Succeeded' ? 'Completed' : 'Error',
            startedAt,
            finishedAt: at,
          },
        };
  const container = name.startsWith('installer') ? 'installer' : 'pruner';
  return {
    status: {
      phase,
      startTime: startedAt,
      containerStatuses: [{ name: container, image, imageID: '', ready: phase === 'Running', restartCount: 0, state }],
    },
  };
}
