/**
 * Maintains the ClusterOperators while this master leads: computes conditions from probe results, and writes the
 * objects that have changed.
 */

import { semanticEqual } from '../../../api/meta/equality.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { RELEASE_NAMESPACE } from '../../../api/releases/announcement.ts';
import { resources } from '../../../api/resources.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { ApiClient, EventRecorder, Informer, InformerFactory } from '../../../client/types.ts';
import type { ClusterOperator, OperatorCondition } from '../kinds/config/types.ts';
import { recordTransition } from '../transition-events-port.ts';
import {
  conditionsOf,
  OPERATOR_NAMES,
  type OperatorState,
  operatorStates,
  type ProbeFacts,
  statusDiff,
} from './core/index.ts';

export interface OperatorsDeps {
  readonly client: ApiClient;
  readonly informers: InformerFactory;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Period after a change of leader in which hosts may not have reported yet. Missing results do not change conditions in
 * it.
 */
const SETTLED_MS = 30_000;
/** Namespaces of the operators' Events. Other operators record Events in the namespace of the releases. */
const NAMESPACES: ReadonlyMap<string, string> = new Map([
  ...['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map((name): [string, string] => [
    name,
    `openshift-${name}`,
  ]),
  ['ingress', 'openshift-ingress-operator'],
]);

export class Operators {
  readonly #deps: OperatorsDeps;
  readonly #objects: Informer<ClusterOperator>;
  /** Objects as last written. They may be newer than the informer's copies. */
  readonly #written = new Map<string, ClusterOperator>();
  readonly #degradedSince = new Map<string, number>();
  #startedMs = 0;

  constructor(deps: OperatorsDeps) {
    this.#deps = deps;
    this.#objects = deps.informers.informer(resources.clusterOperators);
  }

  start(): void {
    this.#startedMs = this.#deps.clock.monotonicMs();
    this.#written.clear();
    this.#degradedSince.clear();
  }

  /** All ClusterOperators, as last written where the informer's copy is older. */
  list(): ClusterOperator[] {
    return this.#objects.list().map((each) => this.#newest(each.metadata?.name ?? '') ?? each);
  }

  /** Writes the conditions that result from `facts`. Resolves after all changed ClusterOperators are written. */
  async apply(facts: ProbeFacts): Promise<void> {
    const states = operatorStates(facts);
    const settled = this.#deps.clock.monotonicMs() - this.#startedMs > SETTLED_MS;
    for (const state of states) {
      if (state.assessment.unknown !== undefined && !settled) continue;
      await this.#write(state);
    }
    if (!settled) return;
    const names = new Set(states.map(({ name }) => name));
    for (const name of OPERATOR_NAMES) {
      if (names.has(name) || this.#objects.get(name) === undefined) continue;
      this.#deps.log.info('cluster operator deleted', { name });
      await this.#deps.client.resource(resources.clusterOperators).delete(name);
      this.#written.delete(name);
    }
  }

  async #write({ name, assessment, versions, relatedObjects }: OperatorState): Promise<void> {
    const { client, clock, log } = this.#deps;
    const operators = client.resource(resources.clusterOperators);
    let object = this.#newest(name);
    const previous = (object?.status?.conditions ?? []) as readonly OperatorCondition[];
    const times = { monotonicMs: clock.monotonicMs(), nowMs: clock.nowMs() };
    const next = conditionsOf(assessment, previous, this.#degradedSince.get(name), times);
    if (next.degradedSinceMs === undefined) this.#degradedSince.delete(name);
    else this.#degradedSince.set(name, next.degradedSinceMs);
    const status = { conditions: next.conditions, versions, relatedObjects };
    if (object !== undefined && semanticEqual(object.status, status)) return;
    try {
      object ??= await operators.create({ metadata: { name }, spec: {} });
      const written = await operators.update({ ...object, status }, { subresource: 'status' });
      this.#written.set(name, written);
      const shown = next.conditions.map(({ type, status: value }) => `${type}=${value}`).join();
      if (!semanticEqual(statuses(previous), statuses(next.conditions)))
        log.info('cluster operator conditions changed', { name, shown });
      this.#record(written, object.status, status);
    } catch (error) {
      // Another client has written the object. The informer will deliver this change, and the next round writes again.
      if (!(['Conflict', 'AlreadyExists', 'NotFound'] as const).some((each) => isApiError(error, each))) throw error;
      this.#written.delete(name);
    }
  }

  #record(operator: ClusterOperator, before: ClusterOperator['status'], after: ClusterOperator['status']): void {
    const { name = '' } = operator.metadata ?? {};
    const changed = statusDiff(before, after ?? {});
    if (changed === '') return;
    const object = { ...operator, apiVersion: 'config.openshift.io/v1', kind: 'ClusterOperator' };
    const to = { object, namespace: NAMESPACES.get(name) ?? RELEASE_NAMESPACE, component: `${name}-operator` };
    const message = `Status for clusteroperator/${name} changed: ${changed}`;
    recordTransition(this.#deps.recorder, to, { type: 'Normal', reason: 'OperatorStatusChanged', message });
  }

  #newest(name: string): ClusterOperator | undefined {
    const cached = this.#objects.get(name);
    const written = this.#written.get(name);
    if (written === undefined) return cached;
    if (cached === undefined || version(written) > version(cached)) return written;
    this.#written.delete(name);
    return cached;
  }
}

const version = ({ metadata }: ClusterOperator): bigint => BigInt(metadata?.resourceVersion ?? '0');

const statuses = (conditions: readonly OperatorCondition[]): unknown =>
  conditions.map(({ type, status }) => [type, status]);
