/** The admission chain of the server: all plug-ins in upstream's recommended order. */

import { namespaces as namespaceDefinition } from '../../api/kinds/cluster/namespaces/index.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import type { Log } from '../../base/log.ts';
import type { Labels } from '../../base/selector.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import { rigClaims } from '../../rigs/kinds/rigclaims/index.ts';
import { rigs } from '../../rigs/kinds/rigs/index.ts';
import type { Authorization } from '../authorization/index.ts';
import type { ApiServerConfig } from '../config/server-config.ts';
import { PRIVILEGED_POLICY } from '../core/pod-security/policy.ts';
import type { Admission } from '../pipeline/admission.ts';
import type { Kinds } from '../pipeline/kinds.ts';
import { randomSuffix } from '../pipeline/write-request.ts';
import type { Metrics } from '../server/metrics.ts';
import { storeKey } from '../storage/object-store.ts';
import type { CachedObject } from '../watch-cache/cached-object.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';
import type { WebhookCaller } from '../webhooks/caller.ts';
import { type AdmissionPlugin, createAdmission } from './admission.ts';
import { persistentVolumeClaimResize, storageObjectInUseProtection } from './claims/claims.ts';
import { defaultIngressClass, defaultStorageClass } from './claims/default-classes.ts';
import { deviceAdminAccess } from './claims/device-admin-access.ts';
import { rigClaimGates } from './claims/rig-claims.ts';
import {
  certificateApproval,
  certificateSigning,
  certificateSubjectRestriction,
  inferSigner,
  type ReadSigningRequest,
  readableRequest,
} from './identity/certificates.ts';
import { escalation } from './identity/escalation.ts';
import { nodeRestriction } from './identity/node-restriction.ts';
import { ownerReferences } from './identity/owner-references.ts';
import { eventRateLimit } from './namespaces/event-rate-limit.ts';
import { namespaceAutoProvision, namespaceExists } from './namespaces/namespace-existence.ts';
import { namespaceLifecycle } from './namespaces/namespace-lifecycle.ts';
import { denyServiceExternalIps } from './network/external-ips.ts';
import { hostClaims } from './network/host-claims.ts';
import { routeHosts } from './network/route-hosts.ts';
import { OKD_PLUGINS, okdPlugins, openshiftPlugins } from './openshift.ts';
import { pluginTimes } from './plugin-metrics.ts';
import { alwaysPullImages } from './pods/always-pull-images.ts';
import { hostRootImage } from './pods/host-root-image.ts';
import { imagePolicy } from './pods/image-policy.ts';
import { limitRanger } from './pods/limit-ranger.ts';
import { mirrorPods } from './pods/mirror-pods.ts';
import { limitPodHardAntiAffinityTopology, podNodeSelector, podTopologyLabels } from './pods/pod-placement.ts';
import { podSecurity } from './pods/pod-security.ts';
import { extendedResourceToleration, podTolerationRestriction } from './pods/pod-tolerations.ts';
import { priority } from './pods/priority.ts';
import { runtimeClass } from './pods/runtime-class.ts';
import { serviceAccount } from './pods/service-account.ts';
import { defaultTolerationSeconds, taintNodesByCondition } from './pods/tolerations-and-taints.ts';
import { readablePolicyParams } from './policies/generic/readable-params.ts';
import { mutatingPolicies } from './policies/mutating/mutating-policies.ts';
import { validatingPolicies } from './policies/validating/validating-policies.ts';
import type { QuotaStore } from './quota/accessor.ts';
import { resourceQuota } from './quota/index.ts';
import type { AdmissionSettings } from './settings.ts';
import { withStepMetrics } from './step-metrics.ts';
import { HookCaller } from './webhooks/hook-caller.ts';
import { mutatingWebhooks } from './webhooks/mutating.ts';
import { validatingWebhooks } from './webhooks/validating.ts';

const RIGS = rigs.storagePrefix;
const RIG_CLAIMS = rigClaims.storagePrefix;

const NO_POD_SECURITY = {
  defaults: PRIVILEGED_POLICY,
  exemptions: { usernames: new Set<string>(), namespaces: new Set<string>(), runtimeClasses: new Set<string>() },
};

const NO_NODE_SELECTORS = { clusterDefault: {}, whitelists: new Map<string, Labels>() };
const NO_TOLERATIONS = { defaults: [], whitelist: [] };

export interface ChainDeps {
  readonly cache: WatchCache;
  readonly authorization: Authorization;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly webhooks: WebhookCaller;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Names of plug-ins that are switched off. */
  readonly disabled: ReadonlySet<string>;
  /** Names of plug-ins that are switched on although they are off by default. */
  readonly enabled: ReadonlySet<string>;
  readonly settings: AdmissionSettings;
  kinds(): Kinds;
  /** Domain of routes without a host. Default: the domain of the OpenShift layer. */
  readonly domain?: string | undefined;
  readonly readSigningRequest: ReadSigningRequest;
  readonly quotas: QuotaStore;
  createNamespace(name: string): Promise<void>;
  /** Stores the node group of a Node whose own host deletes it, so that the host cannot claim another group later. */
  rememberGroup(node: KubeObject, group: string): Promise<void>;
  /** Reads a namespace from the store, not from the watch cache. */
  storedNamespace(name: string): Promise<CachedObject | undefined>;
}

/**
 * Plug-ins that are switched off. The plug-ins for security context constraints, role binding restrictions and hosts of
 * ingresses are on in profile okd only.
 */
export function disabledPlugins({ disabledAdmission = [], openshift }: ApiServerConfig): ReadonlySet<string> {
  return new Set([...disabledAdmission, ...(openshift?.profile === 'okd' ? [] : OKD_PLUGINS)]);
}

export function createAdmissionChain(deps: ChainDeps): Admission {
  const { cache, authorization } = deps;
  const namespaces = {
    cached: (name: string) => cache.kind('namespaces').get('', name),
    stored: deps.storedNamespace,
    key: (name: string) => storeKey({ definition: namespaceDefinition, namespace: '', name }),
  };
  const nowMs = (): number => deps.clock.monotonicMs();
  const caller = new HookCaller({
    caller: deps.webhooks,
    namespaces,
    metrics: deps.metrics,
    log: deps.log,
    access: authorization,
    identities: { admit: deps.settings.mutatingAs, validating: deps.settings.validatingAs },
    newUid: () => deps.random.uuid(),
    nowMs,
  });
  const { settings } = deps;
  const policySources = { kinds: deps.kinds, namespaces, access: authorization, metrics: deps.metrics, nowMs };
  const node = (name: string) => cache.kind('minions').get('', name);
  /** A plug-in that is off by default, if it is enabled. */
  const ifEnabled = (plugin: AdmissionPlugin): AdmissionPlugin[] => (deps.enabled.has(plugin.name) ? [plugin] : []);
  const all = [
    ...ifEnabled(namespaceAutoProvision(namespaces, deps.createNamespace)),
    namespaceLifecycle(namespaces),
    ...ifEnabled(namespaceExists(namespaces)),
    imagePolicy((namespace, name) => cache.kind('openshift.io/imagestreams').get(namespace, name)?.shared()),
    ...ifEnabled(limitPodHardAntiAffinityTopology),
    limitRanger((namespace) => {
      const ranges = cache.kind('limitranges');
      return ranges.size === 0 ? [] : ranges.list(namespace);
    }),
    serviceAccount({
      accounts: (namespace, name) => cache.kind('serviceaccounts').get(namespace, name),
      clock: deps.clock,
      randomSuffix: (length) => randomSuffix(deps.random, length),
    }),
    mirrorPods,
    hostRootImage,
    nodeRestriction({
      node,
      pod: (namespace, name) => cache.kind('pods').get(namespace, name),
      claim: (namespace, name) => cache.kind('persistentvolumeclaims').get(namespace, name),
      volume: (name) => cache.kind('persistentvolumes').get('', name),
      driver: (name) => cache.kind('csidrivers').get('', name),
      access: authorization,
      rememberGroup: deps.rememberGroup,
    }),
    taintNodesByCondition,
    ...ifEnabled(alwaysPullImages),
    ...okdPlugins(cache, authorization, deps.clock),
    podSecurity({
      settings: settings.podSecurity ?? NO_POD_SECURITY,
      namespaces,
      pods: (namespace) => cache.kind('pods').list(namespace),
      clock: deps.clock,
    }),
    ...ifEnabled(podNodeSelector(settings.podNodeSelector ?? NO_NODE_SELECTORS, namespaces)),
    priority(() => cache.kind('priorityclasses')),
    defaultTolerationSeconds(settings.tolerationSeconds),
    ...ifEnabled(podTolerationRestriction(settings.podTolerations ?? NO_TOLERATIONS, namespaces)),
    ...ifEnabled(eventRateLimit(settings.eventLimits ?? [], nowMs)),
    ...ifEnabled(extendedResourceToleration),
    defaultStorageClass(() => cache.kind('storageclasses')),
    storageObjectInUseProtection,
    ownerReferences(authorization, deps.kinds),
    persistentVolumeClaimResize((name) => cache.kind('storageclasses').get('', name)),
    runtimeClass((name) => cache.kind('runtimeclasses').get('', name)),
    inferSigner(deps.readSigningRequest),
    readableRequest(deps.readSigningRequest),
    certificateApproval(authorization),
    certificateSigning(authorization),
    certificateSubjectRestriction,
    defaultIngressClass(() => cache.kind('ingressclasses')),
    ...ifEnabled(denyServiceExternalIps),
    podTopologyLabels(node),
    routeHosts(authorization, deps.domain),
    hostClaims(() => deps.clock.nowMs()),
    escalation(authorization),
    readablePolicyParams({
      kinds: deps.kinds,
      access: authorization,
      policy: (plural, name) => cache.kind(plural).get('', name),
    }),
    deviceAdminAccess(namespaces),
    rigClaimGates({
      rigs: () => cache.kind(RIGS).list(undefined),
      claim: (namespace, name) => cache.kind(RIG_CLAIMS).get(namespace, name),
    }),
    // Policies and webhooks run after the built-in plug-ins, so that they see and validate the final object.
    mutatingPolicies({
      ...policySources,
      policies: () => cache.kind('mutatingadmissionpolicies'),
      bindings: () => cache.kind('mutatingadmissionpolicybindings'),
    }),
    mutatingWebhooks(caller, () => cache.kind('mutatingwebhookconfigurations'), deps.kinds),
    validatingPolicies({
      ...policySources,
      policies: () => cache.kind('validatingadmissionpolicies'),
      bindings: () => cache.kind('validatingadmissionpolicybindings'),
    }),
    validatingWebhooks(caller, () => cache.kind('validatingwebhookconfigurations'), deps.kinds),
    // Quota runs last: it reserves usage, which must not be done for a request that another plug-in rejects.
    resourceQuota({
      quotas: deps.quotas,
      limited: settings.limitedResources ?? new Map(),
      clock: deps.clock,
    }),
    ...openshiftPlugins(deps),
  ];
  const plugins = all.filter(({ name }) => !deps.disabled.has(name));
  return withStepMetrics(createAdmission(plugins, pluginTimes(deps.metrics, nowMs)), deps.metrics, nowMs);
}
