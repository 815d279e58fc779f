/**
 * Keeps the usage in quotas correct: when limits change, when counted objects are deleted or shrink, and periodically
 * in full. Usage is computed in api/quota. The API server adds the usage of new objects itself. Source:
 * pkg/controller/resourcequota.
 */
import type { Pod, ResourceQuota } from '../../../api/generated/core/v1.ts';
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { sameAmounts } from '../../../api/quota/amounts.ts';
import { countName, evaluatorOf, type GroupResource } from '../../../api/quota/evaluators.ts';
import { calculateUsage, countedKinds, planStatus } from '../../../api/quota/totals.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Informer, WorkQueue } from '../../../client/types.ts';
import type { DiscoveredKind } from '../../framework/discovery.ts';
import type { ControllerHandle, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { WHOLE_COPIES } from '../../garbage-collection/owner-references/controller.ts';

const RESYNC_MS = 5 * 60_000;
/** Interval for checking whether the server serves a counted kind that was missing. */
const REDISCOVER_MS = 30_000;
const DEFINITION_DELAY_MS = 500;
/**
 * Usage is lowered only if the API server has not changed the quota for this time. By then, each object for which the
 * API server had reserved usage is either stored and observed, or its reservation was returned.
 */
const QUIET_MS = 1_000;

/** Kind of custom resource definitions, which add and remove kinds. */
const DEFINITIONS: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
};

export const resourceQuotaController: ControllerSpec = {
  name: 'resourcequota',
  reads: [...WHOLE_COPIES, DEFINITIONS],
  writes: [resources.resourceQuotas],
  uses: ['discovery', 'anyKind'],
  prepare: (handle) => {
    const quotas = handle.informer(resources.resourceQuotas);
    handle.informer(resources.pods);
    handle.informer(resources.services);
    handle.informer(resources.persistentVolumeClaims);
    const definitions = handle.informer<KubeObject>(DEFINITIONS, { metadataOnly: true });
    return (scope) => new QuotaController(handle, scope, quotas).start(definitions);
  },
};

const keyOf = ({ metadata }: KubeObject): string => `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`;

class QuotaController {
  readonly #handle: ControllerHandle;
  readonly #scope: RunScope;
  readonly #quotas: Informer<ResourceQuota>;
  readonly #queue: WorkQueue;
  /** Monotonic time of the last write by another client, by key of the quota. */
  readonly #touched = new Map<string, number>();
  /** Version that this controller wrote last, by key of the quota. */
  readonly #written = new Map<string, string>();
  readonly #counted = new Map<string, Informer<KubeObject>>();
  #kinds = new Map<string, DiscoveredKind>();
  #discovered = Number.NEGATIVE_INFINITY;
  #discovery: Promise<void> = Promise.resolve();

  constructor(handle: ControllerHandle, scope: RunScope, quotas: Informer<ResourceQuota>) {
    this.#handle = handle;
    this.#scope = scope;
    this.#quotas = quotas;
    this.#queue = scope.queue((key) => this.#sync(key), 5);
  }

  start(definitions: Informer<KubeObject>): void {
    this.#scope.onChange(this.#quotas, {
      added: (quota) => this.#notice(quota),
      updated: (quota) => this.#notice(quota),
      deleted: (quota) => {
        this.#touched.delete(keyOf(quota));
        this.#written.delete(keyOf(quota));
      },
    });
    let isDue = false;
    const rediscover = (): void => {
      if (isDue) return;
      isDue = true;
      this.#scope.after(DEFINITION_DELAY_MS, () => {
        isDue = false;
        this.#resync();
      });
    };
    this.#scope.onChange(definitions, { added: rediscover, updated: rediscover, deleted: rediscover });
    this.#scope.every(RESYNC_MS, () => this.#resync());
  }

  #resync(): void {
    this.#discovered = Number.NEGATIVE_INFINITY;
    for (const quota of this.#quotas.list()) this.#queue.add(keyOf(quota));
  }

  #notice(quota: ResourceQuota): void {
    const key = keyOf(quota);
    if (this.#written.get(key) !== quota.metadata?.resourceVersion) this.#touched.set(key, this.#nowMs());
    const { spec, status } = quota;
    const isNew = JSON.stringify(spec?.hard ?? {}) !== JSON.stringify(status?.hard ?? {});
    if (isNew || status?.used === undefined) this.#queue.add(key);
  }

  #nowMs(): number {
    return this.#handle.clock.monotonicMs();
  }

  async #sync(key: string): Promise<void> {
    const before = this.#quotas.get(key);
    if (before === undefined || before.metadata?.deletionTimestamp !== undefined) return;
    const copies = new Map<string, Informer<KubeObject> | undefined>();
    for (const kind of countedKinds(before)) {
      const copy = await this.#copyOf(kind);
      if (copy === undefined) this.#queue.addAfter(key, REDISCOVER_MS);
      if (copy !== undefined && !copy.hasSynced) {
        // Usage is written only after the informers of all counted kinds have synced.
        void copy.synced.then(() => this.#queue.add(key));
        return;
      }
      copies.set(countName(kind), copy);
    }
    // The quota may have changed while the informers of the counted kinds were created.
    const quota = this.#quotas.get(key);
    if (quota === undefined) return;
    const namespace = quota.metadata?.namespace ?? '';
    const reckoned = calculateUsage(
      quota,
      (kind) => copies.get(countName(kind))?.list(namespace),
      this.#handle.clock.nowMs(),
    );
    const quietFor = this.#nowMs() - (this.#touched.get(key) ?? 0);
    const { status, isHeldBack } = planStatus(quota, reckoned, quietFor >= QUIET_MS);
    if (isHeldBack) this.#queue.addAfter(key, Math.max(QUIET_MS - quietFor, 10));
    if (status !== undefined) await this.#write(key, { ...quota, status });
  }

  async #write(key: string, quota: ResourceQuota): Promise<void> {
    try {
      const written = await this.#handle.writer(resources.resourceQuotas).update(quota, { subresource: 'status' });
      this.#written.set(key, written.metadata?.resourceVersion ?? '');
    } catch (error) {
      if (isApiError(error, 'NotFound')) return;
      if (!isApiError(error, 'Conflict')) throw error;
      // The write conflicts, because the API server has reserved usage in the meantime.
      this.#queue.addAfter(key, QUIET_MS);
    }
  }

  /** Informer of all objects of a kind. Undefined when the server does not serve the kind (yet). */
  async #copyOf(resource: GroupResource): Promise<Informer<KubeObject> | undefined> {
    const name = countName(resource);
    const kind = await this.#kindOf(name);
    if (kind === undefined) {
      this.#counted.delete(name);
      return undefined;
    }
    const whole = WHOLE_COPIES.find((each) => each.group === kind.group && each.plural === kind.plural);
    // The informer is requested at each call, because a stopped informer is replaced by a new one.
    const informer =
      whole === undefined ? this.#handle.use('anyKind').informer(kind) : this.#handle.informer<KubeObject>(whole);
    if (this.#counted.get(name) !== informer) {
      this.#counted.set(name, informer);
      informer.start();
      this.#follow(resource, informer);
    }
    return informer;
  }

  async #kindOf(name: string): Promise<DiscoveredKind | undefined> {
    const isOld = this.#nowMs() - this.#discovered > (this.#kinds.has(name) ? RESYNC_MS : REDISCOVER_MS);
    if (isOld) {
      this.#discovered = this.#nowMs();
      this.#discovery = this.#discover();
    }
    // Concurrent callers share the running discovery.
    await this.#discovery;
    return this.#kinds.get(name);
  }

  async #discover(): Promise<void> {
    try {
      const { kinds } = await this.#handle.use('discovery')(this.#scope.signal);
      const countable = kinds.filter(({ verbs, namespaced }) => namespaced && verbs.has('list') && verbs.has('watch'));
      this.#kinds = new Map(countable.map((kind) => [countName(kind), kind]));
    } catch (error) {
      this.#handle.log.warn('quota discovery failed', { error: messageOf(error) });
    }
  }

  #follow(resource: GroupResource, informer: Informer<KubeObject>): void {
    const evaluator = evaluatorOf(resource);
    if (evaluator === undefined) return;
    const wake = (namespace: string): void => {
      for (const quota of this.#quotas.list(namespace)) {
        if (Object.keys(quota.spec?.hard ?? {}).some((name) => evaluator.counts(name))) this.#queue.add(keyOf(quota));
      }
    };
    const namespaceOf = ({ metadata }: KubeObject): string => metadata?.namespace ?? '';
    this.#scope.onChange(informer, {
      deleted: (object) => wake(namespaceOf(object)),
      updated: (object, old) => {
        const namespace = namespaceOf(object);
        if (this.#quotas.list(namespace).length === 0) return;
        const nowMs = this.#handle.clock.nowMs();
        const deadline = (each: KubeObject) => (each as Pod).spec?.activeDeadlineSeconds;
        const isSame =
          deadline(object) === deadline(old) &&
          sameAmounts(evaluator.usage(object, nowMs), evaluator.usage(old, nowMs));
        if (!isSame) wake(namespace);
      },
    });
  }
}
