/** Executes the install strategy of an operator version and checks whether its deployments run. */
import type { CustomResourceDefinition } from '../../../../api/generated/apiextensions/v1.ts';
import type { Deployment } from '../../../../api/generated/apps/v1.ts';
import type { Secret } from '../../../../api/generated/core/v1.ts';
import { semanticEqual } from '../../../../api/meta/equality.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';
import { ApiError, isApiError } from '../../../../api/meta/status.ts';
import { messageOf } from '../../../../base/errors.ts';
import type { RouterFacts } from '../../../../network/router/controllers/ingress-router-port.ts';
import {
  apiServicesOf,
  CRD_KIND,
  conversionsOf,
  deploymentsOf,
  digestOf,
  dnsNamesOf,
  type Health,
  isComponentOf,
  MANAGED_LABEL,
  OPERATOR_GROUP,
  OPERATOR_NAMESPACE,
  OWNER_NAMESPACE_LABEL,
  ownerLabels,
  ownerReference,
  providedApiRoles,
  refusedApi,
  SPEC_HASH_LABEL,
  secretName,
  serviceAccountNames,
  servicesOf,
  servingDeployments,
  TARGET_NAMESPACES,
  targetRbacOf,
  unknownDeployment,
  webhookConfigurations,
} from '../core/index.ts';
import type { ClusterServiceVersion, OperatorCondition, OperatorGroup, SubscriptionConfig } from '../kinds/types.ts';
import { type ImpersonatedClient, SERVER_GROUPS } from './actor.ts';
import { ownedBy } from './cleanup.ts';
import type { Olm } from './context.ts';

export interface StrategyContext {
  readonly csv: ClusterServiceVersion;
  readonly group: OperatorGroup | undefined;
  readonly targets: readonly string[];
  readonly config: SubscriptionConfig;
}

const RENEW_AT_MOST_MS = 24 * 3_600_000;
const RBAC_VERSION = 'rbac.authorization.k8s.io/v1';

export class InstallStrategy {
  readonly #olm: Olm;
  /** Monotonic time at which this process last issued a certificate, by `<namespace>/<deployment>`. */
  readonly #issuedMs = new Map<string, number>();

  constructor(olm: Olm) {
    this.#olm = olm;
  }

  async health(context: StrategyContext): Promise<Health> {
    const invalid = this.#invalid(context.csv);
    if (invalid !== undefined) return { applied: false, ready: false, message: '', invalid };
    const certificates = await this.#certificates(context.csv);
    if (certificates === undefined) return { applied: false, ready: false, message: '' };
    const waits: string[] = [];
    for (const wanted of this.#deployments(context, certificates)) {
      const { name = '', namespace = '' } = wanted.metadata ?? {};
      const found = this.#olm.informers.deployments.get(`${namespace}/${name}`);
      if (
        found === undefined ||
        found.metadata?.labels?.[SPEC_HASH_LABEL] !== wanted.metadata?.labels?.[SPEC_HASH_LABEL]
      )
        return { applied: false, ready: false, message: '' };
      const wait = waitOf(found);
      if (wait !== undefined) waits.push(`waiting for deployment ${name} to become ready: ${wait}`);
    }
    return { applied: true, ready: waits.length === 0, message: waits.join('; ') };
  }

  /** Creates or updates all objects of the strategy. Throws the ApiErrors of the API server. */
  async apply(context: StrategyContext): Promise<void> {
    const { csv, group, targets } = context;
    const installer = this.#olm.actors.installer(group);
    const { manager } = this.#olm.actors;
    await this.#condition(csv, manager);
    await this.#rbac(csv, targets, installer);
    for (const service of servicesOf(csv)) await installer.ensure(service as KubeObject);
    const certificates = await this.#issue(csv, installer);
    for (const deployment of this.#deployments(context, certificates)) await this.#deploy(deployment, installer);
    const bundle = Buffer.from(this.#olm.handle.use('rootCaPem')).toString('base64');
    for (const each of webhookConfigurations(csv, targets, bundle)) await this.#own(csv, each, installer);
    for (const each of apiServicesOf(csv, bundle)) await this.#own(csv, each, installer);
    for (const { crd, conversion } of conversionsOf(csv, bundle)) await this.#convert(csv, crd, conversion, installer);
    await this.#provideRoles(csv, installer);
  }

  /**
   * Creates or updates a cluster-scoped object of the operator version. Rejects an object that belongs to another
   * owner.
   */
  async #own(csv: ClusterServiceVersion, wanted: KubeObject, installer: ImpersonatedClient): Promise<void> {
    const found = await this.#olm.actors.manager.get<KubeObject>(wanted);
    const labels = ownerLabels(csv);
    const isOwn = (key: string): boolean => found?.metadata?.labels?.[key] === labels[key];
    // A newer version in the same namespace may take over the objects of the version that it replaces.
    if (found !== undefined && !(isOwn(OWNER_NAMESPACE_LABEL) && isOwn(MANAGED_LABEL)))
      throw new ApiError(
        'Invalid',
        `${wanted.kind} ${wanted.metadata?.name}: belongs to another owner; delete it first`,
      );
    await installer.ensure(wanted);
  }

  /**
   * Creates roles for the owned APIs, which are aggregated into the roles admin, edit and view of the cluster. If the
   * installer lacks these permissions, the operator is installed without the roles.
   */
  async #provideRoles(csv: ClusterServiceVersion, installer: ImpersonatedClient): Promise<void> {
    try {
      for (const owned of csv.spec?.customresourcedefinitions?.owned ?? [])
        for (const role of providedApiRoles(owned)) await installer.ensure(role as KubeObject);
    } catch (error) {
      if (!isApiError(error, 'Forbidden')) throw error;
      this.#olm.handle.recorder.event(csv, 'Warning', 'AggregatedRolesRefused', messageOf(error));
    }
  }

  #invalid(csv: ClusterServiceVersion): string | undefined {
    const { strategy, spec } = csv.spec?.install ?? {};
    if (strategy !== 'deployment') return `install strategy ${strategy} is not supported; use deployment`;
    if ((spec?.deployments ?? []).length === 0) return 'install strategy has no deployments';
    const refused = refusedApi(csv, SERVER_GROUPS);
    if (refused !== undefined) return refused;
    const unknown = unknownDeployment(csv);
    if (unknown !== undefined)
      return `a webhook or API service names deployment ${JSON.stringify(unknown)}, which the strategy does not have`;
    if (servingDeployments(csv).length > 0 && this.#router() === undefined)
      return 'serving certificates cannot be issued here; webhooks are not supported';
    return undefined;
  }

  #router(): RouterFacts | undefined {
    return this.#olm.handle.use('router');
  }

  #deployments(
    { csv, group, targets, config }: StrategyContext,
    certificates: ReadonlyMap<string, string>,
  ): Deployment[] {
    const annotations = {
      [OPERATOR_GROUP]: group?.metadata?.name ?? '',
      [OPERATOR_NAMESPACE]: csv.metadata?.namespace ?? '',
      [TARGET_NAMESPACES]: targets.join(','),
    };
    return deploymentsOf(csv, { annotations, config, certificates });
  }

  async #deploy(deployment: Deployment, installer: ImpersonatedClient): Promise<void> {
    const { name, namespace } = deployment.metadata ?? {};
    const found = this.#olm.informers.deployments.get(`${namespace}/${name}`);
    if (found !== undefined && !semanticEqual(found.spec?.selector, deployment.spec?.selector)) {
      // The selector of a deployment is immutable, so the deployment is deleted and then created again.
      await installer.remove(deployment as KubeObject);
      throw new ApiError('Conflict', `deployment ${name}: its selector changes; it is created again`);
    }
    await installer.ensure(deployment as KubeObject);
  }

  /** Creates roles in the target namespaces and deletes the roles in former target namespaces. */
  async #rbac(csv: ClusterServiceVersion, targets: readonly string[], installer: ImpersonatedClient): Promise<void> {
    const own = csv.metadata?.namespace ?? '';
    const wanted = targetRbacOf(csv, own, targets);
    for (const each of wanted) await installer.ensure(each as KubeObject);
    const { manager } = this.#olm.actors;
    const kept = new Set([own, ...targets]);
    for (const kind of ['RoleBinding', 'Role'])
      for (const each of await manager.labelled(kind, RBAC_VERSION, ownedBy(csv)))
        if (!kept.has(each.metadata?.namespace ?? '')) await manager.remove(each);
  }

  /** Creates the OperatorCondition and the permission of the operator to update it. */
  async #condition(csv: ClusterServiceVersion, manager: ImpersonatedClient): Promise<void> {
    const { name = '', namespace = '' } = csv.metadata ?? {};
    const ownerReferences = [ownerReference(csv)];
    const accounts = serviceAccountNames(csv);
    const deployments = (csv.spec?.install?.spec?.deployments ?? []).map((each) => each.name ?? '');
    const condition: OperatorCondition = {
      apiVersion: 'operators.coreos.com/v2',
      kind: 'OperatorCondition',
      metadata: { name, namespace, ownerReferences },
      spec: { deployments, serviceAccounts: accounts },
    };
    const found = await manager.get<OperatorCondition>(condition);
    if (found === undefined) await manager.create(condition);
    const labels = ownerLabels(csv);
    const metadata = { name, namespace, labels, ownerReferences };
    const role = {
      apiVersion: RBAC_VERSION,
      kind: 'Role',
      metadata,
      rules: [
        {
          apiGroups: ['operators.coreos.com'],
          resources: ['operatorconditions'],
          verbs: ['get', 'update', 'patch'],
          resourceNames: [name],
        },
        {
          apiGroups: ['operators.coreos.com'],
          resources: ['operatorconditions/status'],
          verbs: ['get', 'update', 'patch'],
          resourceNames: [name],
        },
      ],
    };
    await manager.ensure(role as KubeObject);
    if (accounts.length === 0) return;
    const binding = {
      apiVersion: RBAC_VERSION,
      kind: 'RoleBinding',
      metadata,
      subjects: accounts.map((each) => ({ kind: 'ServiceAccount', name: each, namespace })),
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    };
    await manager.ensure(binding as KubeObject);
  }

  /** Digests of the serving certificates, by deployment. Undefined if a certificate is missing or expires soon. */
  async #certificates(csv: ClusterServiceVersion): Promise<Map<string, string> | undefined> {
    const found = new Map<string, string>();
    const namespace = csv.metadata?.namespace ?? '';
    for (const deployment of servingDeployments(csv)) {
      const secret = await this.#olm.actors.manager.get<Secret & KubeObject>(secretAt(deployment, namespace));
      const pem = Buffer.from(secret?.data?.['tls.crt'] ?? '', 'base64').toString('utf8');
      if (pem === '' || this.#endsSoon(pem, deployment, namespace)) return undefined;
      found.set(deployment, digestOf(pem));
    }
    return found;
  }

  /**
   * Whether the certificate must be renewed. Renewals are limited to one a day, because if the CA expires soon, so does
   * each new certificate.
   */
  #endsSoon(pem: string, deployment: string, namespace: string): boolean {
    const issuedMs = this.#issuedMs.get(`${namespace}/${deployment}`);
    if (issuedMs !== undefined && this.#olm.handle.clock.monotonicMs() - issuedMs < RENEW_AT_MOST_MS) return false;
    return this.#router()?.needsRenewal(pem, dnsNamesOf(deployment, namespace)) !== false;
  }

  async #issue(csv: ClusterServiceVersion, installer: ImpersonatedClient): Promise<Map<string, string>> {
    const router = this.#router();
    const present = await this.#certificates(csv);
    if (present !== undefined || router === undefined) return present ?? new Map();
    const issued = new Map<string, string>();
    const namespace = csv.metadata?.namespace ?? '';
    for (const deployment of servingDeployments(csv)) {
      const { certPem, keyPem } = await router.issue(dnsNamesOf(deployment, namespace));
      this.#issuedMs.set(`${namespace}/${deployment}`, this.#olm.handle.clock.monotonicMs());
      const secret = {
        ...secretAt(deployment, namespace),
        type: 'kubernetes.io/tls',
        data: {
          'tls.crt': Buffer.from(certPem).toString('base64'),
          'tls.key': Buffer.from(keyPem).toString('base64'),
        },
      };
      const metadata = { ...secret.metadata, labels: ownerLabels(csv), ownerReferences: [ownerReference(csv)] };
      await installer.ensure({ ...secret, metadata } as KubeObject);
      issued.set(deployment, digestOf(certPem));
    }
    return issued;
  }

  async #convert(
    csv: ClusterServiceVersion,
    name: string,
    conversion: object,
    installer: ImpersonatedClient,
  ): Promise<void> {
    const { manager } = this.#olm.actors;
    const found = await manager.get<CustomResourceDefinition & KubeObject>({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: CRD_KIND,
      metadata: { name },
    });
    if (found === undefined) return;
    const before = found.spec?.conversion;
    if (semanticEqual(before, conversion)) return;
    // A conversion webhook receives every object of the kind, so only a definition of this package is changed as the
    // manager.
    const writer = isComponentOf(csv, found) ? manager : installer;
    await writer.update({ ...found, spec: { ...found.spec, conversion } } as KubeObject);
  }
}

const secretAt = (deployment: string, namespace: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: secretName(deployment), namespace },
});

/** Reason why a deployment is not ready; undefined if it is ready. */
function waitOf({ metadata, spec, status }: Deployment): string | undefined {
  const wanted = spec?.replicas ?? 1;
  if ((status?.observedGeneration ?? 0) < (metadata?.generation ?? 0)) return 'waiting for spec update to be observed';
  if ((status?.updatedReplicas ?? 0) < wanted)
    return `waiting for ${wanted - (status?.updatedReplicas ?? 0)} outdated replica(s) to be updated`;
  if ((status?.replicas ?? 0) > (status?.updatedReplicas ?? 0))
    return `waiting for ${(status?.replicas ?? 0) - (status?.updatedReplicas ?? 0)} outdated replica(s) to be terminated`;
  if ((status?.availableReplicas ?? 0) < wanted)
    return `deployment ${JSON.stringify(metadata?.name)} not available: ${status?.availableReplicas ?? 0} of ${wanted} replicas are available`;
  return undefined;
}
