/**
 * Updates the usage of each ClusterResourceQuota in its status, in total and by project. The API server enforces quotas
 * on its own; the status only informs users. Usage is computed in api/quota. Source:
 * openshift/openshift-controller-manager pkg/quota/clusterquotareconciliation.
 */
import type { Namespace } from '../../../api/generated/core/v1.ts';
import {
  type ClusterResourceQuota,
  clusterResourceQuotas,
} from '../../../api/kinds/cluster/clusterresourcequotas/index.ts';
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { asResourceQuota, clusterTotals, holdsFor } from '../../../api/quota/cluster.ts';
import { countName, type GroupResource, needsContent } from '../../../api/quota/evaluators.ts';
import { countedKinds } from '../../../api/quota/totals.ts';
import { resources } from '../../../api/resources.ts';
import type { Informer } from '../../../client/types.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import type { ControllerHandle, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';

/** Delay after which a change of counted objects appears in the status. */
const SETTLE_MS = 500;
/** Interval for listing kinds without a local copy, while a quota counts them. */
const RESYNC_MS = 30_000;
/** Number of objects per page of a list. */
const PAGE = 500;

const { group, version, kind, plural, namespaced } = clusterResourceQuotas;
const QUOTAS: ResourceType<ClusterResourceQuota> = { group, version, kind, plural, namespaced };

export const clusterResourceQuotaController: ControllerSpec = {
  name: 'clusterresourcequota',
  reads: [QUOTAS, resources.namespaces, resources.pods, resources.services, resources.persistentVolumeClaims],
  writes: [QUOTAS],
  uses: ['discovery', 'anyKind'],
  prepare: (handle) => {
    const quotas = handle.informer(QUOTAS);
    const copies: Copies = {
      namespaces: handle.informer(resources.namespaces),
      counted: new Map<string, Informer<KubeObject>>([
        ['pods', handle.informer<KubeObject>(resources.pods)],
        ['services', handle.informer<KubeObject>(resources.services)],
        ['persistentvolumeclaims', handle.informer<KubeObject>(resources.persistentVolumeClaims)],
      ]),
    };
    return (scope) => new ClusterQuotaController(handle, scope, quotas, copies).start();
  },
};

interface Copies {
  readonly namespaces: Informer<Namespace>;
  /** Informers of counted kinds, by the name under which quotas count the kind. */
  readonly counted: ReadonlyMap<string, Informer<KubeObject>>;
}

class ClusterQuotaController extends ControllerTerm {
  readonly #quotas: Informer<ClusterResourceQuota>;
  readonly #copies: Copies;

  constructor(handle: ControllerHandle, scope: RunScope, quotas: Informer<ClusterResourceQuota>, copies: Copies) {
    super(handle, scope, 1);
    this.#quotas = quotas;
    this.#copies = copies;
  }

  override start(): void {
    const wake = ({ metadata }: KubeObject): void => this.queue.add(metadata?.name ?? '');
    this.scope.onChange(this.#quotas, { added: wake, updated: wake });
    const wakeAll = (): void => {
      for (const quota of this.#quotas.list()) this.queue.addAfter(quota.metadata?.name ?? '', SETTLE_MS);
    };
    this.scope.onChange(this.#copies.namespaces, { added: wakeAll, updated: wakeAll, deleted: wakeAll });
    for (const copy of this.#copies.counted.values())
      this.scope.onChange(copy, { added: wakeAll, updated: wakeAll, deleted: wakeAll });
    this.scope.every(RESYNC_MS, wakeAll);
  }

  protected override async sync(name: string): Promise<void> {
    const quota = this.#quotas.get(name);
    if (quota === undefined || quota.metadata?.deletionTimestamp !== undefined) return;
    const names = this.#copies.namespaces
      .list()
      .filter((namespace) => holdsFor(quota, namespace))
      .map(({ metadata }) => metadata?.name ?? '');
    const listed = await this.#listed(countedKinds(asResourceQuota(quota)), names);
    const objectsOf = (counted: GroupResource, namespace: string) =>
      this.#copies.counted.get(countName(counted))?.list(namespace) ?? listed.get(`${countName(counted)} ${namespace}`);
    const status = clusterTotals(quota, names, objectsOf, this.handle.clock.nowMs());
    if (JSON.stringify(status) === JSON.stringify(quota.status)) return;
    const writer = this.handle.writer(QUOTAS);
    await ignoreNotFound(() => writer.update({ ...quota, status }, { subresource: 'status' }));
  }

  /** Usage of the kinds without a local copy, by kind and namespace. */
  async #listed(
    counted: readonly GroupResource[],
    namespaces: readonly string[],
  ): Promise<ReadonlyMap<string, readonly KubeObject[]>> {
    const found = new Map<string, readonly KubeObject[]>();
    const uncopied = counted.filter((each) => !this.#copies.counted.has(countName(each)));
    if (uncopied.length === 0 || namespaces.length === 0) return found;
    const { kinds } = await this.handle.use('discovery')(this.scope.signal);
    for (const each of uncopied) {
      const served = kinds.find((candidate) => candidate.group === each.group && candidate.plural === each.plural);
      if (served === undefined) continue;
      for (const namespace of namespaces)
        found.set(`${countName(each)} ${namespace}`, await this.#listAll(served, namespace, !needsContent(each)));
    }
    return found;
  }

  /** Lists in pages and without content that is not counted, because a namespace may have many large objects. */
  async #listAll(kind: ResourceType, namespace: string, metadataOnly: boolean): Promise<readonly KubeObject[]> {
    const client = this.handle.use('anyKind').client(kind);
    const { signal } = this.scope;
    const objects: KubeObject[] = [];
    let from = {};
    for (;;) {
      const page = await client.list({ namespace, metadataOnly, limit: PAGE, signal, ...from });
      for (const object of page.items) objects.push(object);
      if (!page.metadata.continue) return objects;
      from = { continue: page.metadata.continue };
    }
  }
}
