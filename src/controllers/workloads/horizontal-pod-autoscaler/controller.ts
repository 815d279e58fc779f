/** Controller of HorizontalPodAutoscalers: reads metrics (metrics-controller.ts), plans (plan.ts) and scales. */
import type { HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus } from '../../../api/generated/autoscaling/v2.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import { matchesLabels, parseLabelSelector } from '../../../base/selector.ts';
import type { Informer, ResourceClient, WorkQueue } from '../../../client/types.ts';
import type { Capabilities } from '../../framework/capabilities.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import { equalIgnoringEmptyLists } from '../../framework/core/equality.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { type Scale, scaleEndpoint } from '../../framework/scale.ts';
import { type MetricScope, readMetrics } from './metrics-controller.ts';
import { ableToScale, planAutoscaler, unableToScale } from './plan.ts';
import { NO_MEMORY, recordRescale, type ScaleMemory } from './scaling-behavior.ts';

export const horizontalPodAutoscalerController: ControllerSpec = {
  name: 'horizontal-pod-autoscaler',
  eventSource: 'horizontal-pod-autoscaler',
  reads: [resources.horizontalPodAutoscalers, resources.pods],
  writes: [resources.horizontalPodAutoscalers],
  uses: ['read', 'updateScale'],
  prepare,
};

/**
 * Interval between two evaluations of an autoscaler. Default of upstream's `--horizontal-pod-autoscaler-sync-period`.
 */
const PERIOD_MS = 15_000;
/** Number of metrics above which an autoscaler has its own queue. A few such objects must not occupy all workers. */
const MANY_METRICS = 20;

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    autoscalers: handle.informer(resources.horizontalPodAutoscalers),
    pods: handle.informer(resources.pods),
    client: handle.writer(resources.horizontalPodAutoscalers),
    read: handle.use('read'),
    updateScale: handle.use('updateScale'),
  };
  return (scope) => new AutoscalerController(handle, access, scope).start();
}

interface Access {
  readonly autoscalers: Informer<HorizontalPodAutoscaler>;
  readonly pods: Informer<Pod>;
  readonly client: ResourceClient<HorizontalPodAutoscaler>;
  readonly read: Capabilities['read'];
  readonly updateScale: Capabilities['updateScale'];
}

class AutoscalerController extends ControllerTerm {
  readonly #access: Access;
  readonly #memories = new Map<string, ScaleMemory>();
  readonly #longQueue: WorkQueue;

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 5);
    this.#access = access;
    this.#longQueue = scope.queue((key) => this.sync(key), 1);
  }

  readonly #wake = (autoscaler: HorizontalPodAutoscaler): void => {
    const isLong = (autoscaler.spec?.metrics?.length ?? 0) > MANY_METRICS;
    (isLong ? this.#longQueue : this.queue).add(objectKey(autoscaler));
  };

  override start(): void {
    this.scope.onChange(this.#access.autoscalers, {
      added: this.#wake,
      updated: (autoscaler, old) => {
        // An update of only the status must not cause an earlier evaluation.
        if (!equalIgnoringEmptyLists(autoscaler.spec, old.spec)) this.#wake(autoscaler);
      },
      deleted: (autoscaler) => {
        this.#memories.delete(objectKey(autoscaler));
      },
    });
    this.scope.every(PERIOD_MS, () => {
      for (const autoscaler of this.#access.autoscalers.list()) this.#wake(autoscaler);
    });
  }

  protected override async sync(key: string): Promise<void> {
    const autoscaler = this.#access.autoscalers.get(key);
    if (autoscaler === undefined || autoscaler.metadata?.deletionTimestamp !== undefined) return;
    const { nowMs } = this.handle.plan();
    const namespace = autoscaler.metadata?.namespace ?? '';
    const target = autoscaler.spec?.scaleTargetRef;
    const { signal } = this.scope;
    let path: string;
    let scale: Scale;
    try {
      const apiVersion = target?.apiVersion ?? 'v1';
      const { kind = '', name = '' } = target ?? {};
      path = (await scaleEndpoint(this.#access.read, { apiVersion, kind, name }, namespace, signal)).path;
      scale = await this.#access.read<Scale>(path, signal);
    } catch (error) {
      const failure = { reason: 'FailedGetScale', message: messageOf(error) } as const;
      this.handle.recorder.event(autoscaler, 'Warning', failure.reason, failure.message);
      await this.#write(autoscaler, unableToScale(autoscaler, undefined, failure, nowMs));
      return;
    }
    const selector = scale.status?.selector ?? '';
    const pods = this.#podsOf(namespace, selector);
    const metricScope: MetricScope = {
      namespace,
      selector,
      resourceOf: async (apiVersion = 'v1', kind) => {
        const target = { apiVersion, kind, name: 'x' };
        return (await scaleEndpoint(this.#access.read, target, namespace, signal, { scalable: false })).resource;
      },
    };
    const readings = await readMetrics(this.#access.read, autoscaler.spec?.metrics ?? [], metricScope, signal);
    const size = { replicas: scale.spec?.replicas ?? 0, statusReplicas: scale.status?.replicas ?? 0, selector };
    const memory = this.#memories.get(key) ?? NO_MEMORY;
    const plan = planAutoscaler({ autoscaler, scale: size, pods, readings }, memory, this.handle.plan());
    this.#memories.set(key, plan.memory);
    for (const event of plan.events) {
      this.handle.recorder.event(autoscaler, event.type, event.reason, event.message);
    }
    let { status } = plan;
    if (plan.rescale !== undefined) {
      const { replicas, reason } = plan.rescale;
      const about = `New size: ${replicas}; reason: ${reason}`;
      try {
        await this.#access.updateScale(path, { ...scale, spec: { ...scale.spec, replicas } });
        this.#memories.set(key, recordRescale(plan.memory, size.replicas, replicas, nowMs));
        this.handle.recorder.event(autoscaler, 'Normal', 'SuccessfulRescale', about);
        status = ableToScale(status, nowMs);
      } catch (error) {
        const failure = { reason: 'FailedUpdateScale', message: messageOf(error) } as const;
        this.handle.recorder.event(autoscaler, 'Warning', 'FailedRescale', `${about}; error: ${failure.message}`);
        const { lastScaleTime } = autoscaler.status ?? {};
        const unchanged = { ...status, desiredReplicas: size.replicas };
        delete unchanged.lastScaleTime;
        if (lastScaleTime !== undefined) unchanged.lastScaleTime = lastScaleTime;
        status = unableToScale(autoscaler, unchanged, failure, nowMs);
      }
    }
    await this.#write(autoscaler, status);
  }

  #podsOf(namespace: string, selector: string): Pod[] {
    if (selector === '') return [];
    const parsed = parseLabelSelector(selector);
    return this.#access.pods.list(namespace).filter((pod) => matchesLabels(parsed, pod.metadata?.labels));
  }

  async #write(autoscaler: HorizontalPodAutoscaler, status: HorizontalPodAutoscalerStatus): Promise<void> {
    if (equalIgnoringEmptyLists(autoscaler.status, status)) return;
    await this.#access.client.update({ ...autoscaler, status }, { subresource: 'status' });
  }
}
