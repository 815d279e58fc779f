/**
 * Types of API versions that upstream removed and that older clients still use. Most are equal to those of the stable
 * version; types that differ are declared here. Source: k8s.io/api.
 */
import { generatedTypes } from './generated/types.ts';
import type { GeneratedType } from './types-format.ts';

/** Removed versions, the stable version with the same types, and their kinds. */
const SAME: readonly (readonly [older: string, current: string, kinds: string])[] = [
  [
    'admissionregistration.v1beta1',
    'admissionregistration.v1',
    'MutatingWebhookConfiguration ValidatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding',
  ],
  [
    'admissionregistration.v1alpha1',
    'admissionregistration.v1',
    'MutatingAdmissionPolicy MutatingAdmissionPolicyBinding',
  ],
  ['apiregistration.v1beta1', 'apiregistration.v1', 'APIService'],
  ['authentication.v1beta1', 'authentication.v1', 'TokenReview SelfSubjectReview'],
  ['authorization.v1beta1', 'authorization.v1', 'SelfSubjectAccessReview SelfSubjectRulesReview'],
  ['autoscaling.v2beta2', 'autoscaling.v2', 'HorizontalPodAutoscaler'],
  ['batch.v1beta1', 'batch.v1', 'CronJob'],
  ['certificates.v1beta1', 'certificates.v1', 'CertificateSigningRequest'],
  ['coordination.v1beta1', 'coordination.v1', 'Lease'],
  ['events.v1beta1', 'events.v1', 'Event'],
  ['flowcontrol.v1beta1', 'flowcontrol.v1', 'FlowSchema'],
  ['flowcontrol.v1beta2', 'flowcontrol.v1', 'FlowSchema'],
  ['flowcontrol.v1beta3', 'flowcontrol.v1', 'FlowSchema PriorityLevelConfiguration'],
  ['networking.v1beta1', 'networking.v1', 'IngressClass'],
  ['node.v1beta1', 'node.v1', 'RuntimeClass'],
  ['policy.v1beta1', 'policy.v1', 'PodDisruptionBudget Eviction'],
  ['rbac.v1beta1', 'rbac.v1', 'ClusterRole ClusterRoleBinding Role RoleBinding'],
  ['scheduling.v1beta1', 'scheduling.v1', 'PriorityClass'],
  ['storage.v1beta1', 'storage.v1', 'CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment'],
];

const META = '#io.k8s.apimachinery.pkg.apis.meta.v1';
const CORE = '#io.k8s.api.core.v1';
const PACKAGES: readonly (readonly [group: string, package_: string])[] = [
  ['apiregistration.', 'io.k8s.kube-aggregator.pkg.apis'],
  ['apiextensions.', 'io.k8s.apiextensions-apiserver.pkg.apis'],
  ['metrics.', 'io.k8s.metrics.pkg.apis'],
];
const named = (name: string): string =>
  `${PACKAGES.find(([group]) => name.startsWith(group))?.[1] ?? 'io.k8s.api'}.${name}`;
const own: Record<string, GeneratedType> = {};
const current = new Map<string, string>();

function kind(name: string, fields: Readonly<Record<string, string>>, required: readonly string[] = []): void {
  own[named(name)] = {
    ...(required.length === 0 ? {} : { r: required }),
    f: { apiVersion: 'string', kind: 'string', metadata: `${META}.ObjectMeta`, ...fields },
  };
  own[named(`${name}List`)] = {
    r: ['items'],
    f: { apiVersion: 'string', kind: 'string', metadata: `${META}.ListMeta`, items: `[]#${named(name)}` },
  };
}

for (const [older, newer, kinds] of SAME) {
  for (const each of kinds.split(' ')) {
    const type = generatedTypes[named(`${newer}.${each}`)];
    if (type === undefined) continue;
    const { apiVersion: _a, kind: _k, metadata: _m, ...rest } = type.f;
    kind(`${older}.${each}`, rest, type.r);
    current.set(named(`${older}.${each}`), named(`${newer}.${each}`));
  }
}

for (const group of ['extensions.v1beta1', 'networking.v1beta1']) {
  const local = (name: string): string => `#${named(`${group}.${name}`)}`;
  const shared = (name: string): string => `#${named(`networking.v1.${name}`)}`;
  kind(`${group}.Ingress`, { spec: local('IngressSpec'), status: shared('IngressStatus') });
  own[named(`${group}.IngressSpec`)] = {
    f: {
      backend: local('IngressBackend'),
      ingressClassName: 'string',
      rules: `[]${local('IngressRule')}`,
      tls: `[]${shared('IngressTLS')}`,
    },
  };
  own[named(`${group}.IngressRule`)] = { f: { host: 'string', http: local('HTTPIngressRuleValue') } };
  own[named(`${group}.HTTPIngressRuleValue`)] = { r: ['paths'], f: { paths: `[]${local('HTTPIngressPath')}` } };
  own[named(`${group}.HTTPIngressPath`)] = {
    r: ['backend'],
    f: { backend: local('IngressBackend'), path: 'string', pathType: 'string' },
  };
  own[named(`${group}.IngressBackend`)] = {
    f: { resource: `${CORE}.TypedLocalObjectReference`, serviceName: 'string', servicePort: 'int-or-string' },
  };
}

{
  const slice = generatedTypes[named('discovery.v1.EndpointSlice')];
  const endpoint = generatedTypes[named('discovery.v1.Endpoint')];
  const { deprecatedTopology: _t, zone: _z, ...fields } = endpoint?.f ?? {};
  const { apiVersion: _a, kind: _k, metadata: _m, ...rest } = slice?.f ?? {};
  kind(
    'discovery.v1beta1.EndpointSlice',
    { ...rest, endpoints: `[]#${named('discovery.v1beta1.Endpoint')}` },
    slice?.r,
  );
  own[named('discovery.v1beta1.Endpoint')] = {
    ...(endpoint?.r === undefined ? {} : { r: endpoint.r }),
    f: { ...fields, topology: '{}string' },
  };
}

{
  const local = (name: string): string => `#${named(`apiextensions.v1beta1.${name}`)}`;
  const shared = (name: string): string => `#${named(`apiextensions.v1.${name}`)}`;
  const fieldsOf = (name: string): Readonly<Record<string, string>> =>
    generatedTypes[named(`apiextensions.v1.${name}`)]?.f ?? {};
  const type = (name: string, r: readonly string[], f: Readonly<Record<string, string>>): void => {
    own[named(`apiextensions.v1beta1.${name}`)] = { r, f };
    current.set(named(`apiextensions.v1beta1.${name}`), named(`apiextensions.v1.${name}`));
  };
  kind(
    'apiextensions.v1beta1.CustomResourceDefinition',
    { spec: local('CustomResourceDefinitionSpec'), status: shared('CustomResourceDefinitionStatus') },
    ['spec'],
  );
  const parts = {
    additionalPrinterColumns: `[]${local('CustomResourceColumnDefinition')}`,
    selectableFields: `[]${shared('SelectableField')}`,
    subresources: shared('CustomResourceSubresources'),
  };
  type('CustomResourceDefinitionSpec', ['group', 'names', 'scope'], {
    ...fieldsOf('CustomResourceDefinitionSpec'),
    ...parts,
    conversion: local('CustomResourceConversion'),
    validation: shared('CustomResourceValidation'),
    version: 'string',
    versions: `[]${local('CustomResourceDefinitionVersion')}`,
  });
  type('CustomResourceDefinitionVersion', ['name', 'served', 'storage'], {
    ...fieldsOf('CustomResourceDefinitionVersion'),
    ...parts,
  });
  const { jsonPath: _path, ...column } = fieldsOf('CustomResourceColumnDefinition');
  type('CustomResourceColumnDefinition', ['JSONPath', 'name', 'type'], { ...column, JSONPath: 'string' });
  type('CustomResourceConversion', ['strategy'], {
    conversionReviewVersions: '[]string',
    strategy: 'string',
    webhookClientConfig: shared('WebhookClientConfig'),
  });
}

for (const review of ['SubjectAccessReview', 'LocalSubjectAccessReview']) {
  const spec = generatedTypes[named('authorization.v1.SubjectAccessReviewSpec')];
  const { groups: _g, ...fields } = spec?.f ?? {};
  own[named('authorization.v1beta1.SubjectAccessReviewSpec')] = { f: { ...fields, group: '[]string' } };
  const fieldsOfReview = {
    spec: `#${named('authorization.v1beta1.SubjectAccessReviewSpec')}`,
    status: `#${named('authorization.v1.SubjectAccessReviewStatus')}`,
  };
  kind(`authorization.v1beta1.${review}`, fieldsOfReview, ['spec']);
}

for (const version of ['flowcontrol.v1beta1', 'flowcontrol.v1beta2']) {
  const local = (name: string): string => `#${named(`${version}.${name}`)}`;
  const shared = (name: string): string => `#${named(`flowcontrol.v1.${name}`)}`;
  kind(`${version}.PriorityLevelConfiguration`, {
    spec: local('PriorityLevelConfigurationSpec'),
    status: shared('PriorityLevelConfigurationStatus'),
  });
  own[named(`${version}.PriorityLevelConfigurationSpec`)] = {
    r: ['type'],
    f: {
      exempt: shared('ExemptPriorityLevelConfiguration'),
      limited: local('LimitedPriorityLevelConfiguration'),
      type: 'string',
    },
  };
  own[named(`${version}.LimitedPriorityLevelConfiguration`)] = {
    f: {
      assuredConcurrencyShares: 'int32',
      borrowingLimitPercent: 'int32',
      lendablePercent: 'int32',
      limitResponse: shared('LimitResponse'),
    },
  };
}

{
  const v2 = '#io.k8s.api.autoscaling.v2';
  const local = (name: string): string => `#${named(`autoscaling.v2beta1.${name}`)}`;
  const reference = `${v2}.CrossVersionObjectReference`;
  const selector = `${META}.LabelSelector`;
  const container = { container: 'string', name: 'string' };
  kind('autoscaling.v2beta1.HorizontalPodAutoscaler', {
    spec: local('HorizontalPodAutoscalerSpec'),
    status: local('HorizontalPodAutoscalerStatus'),
  });
  const { behavior: _b, ...spec } = generatedTypes[named('autoscaling.v2.HorizontalPodAutoscalerSpec')]?.f ?? {};
  const status = generatedTypes[named('autoscaling.v2.HorizontalPodAutoscalerStatus')]?.f ?? {};
  const types: Record<string, Record<string, string>> = {
    HorizontalPodAutoscalerSpec: { ...spec, metrics: `[]${local('MetricSpec')}` },
    HorizontalPodAutoscalerStatus: { ...status, currentMetrics: `[]${local('MetricStatus')}` },
    ObjectMetricSource: {
      averageValue: 'quantity',
      metricName: 'string',
      selector,
      target: reference,
      targetValue: 'quantity',
    },
    PodsMetricSource: { metricName: 'string', selector, targetAverageValue: 'quantity' },
    ResourceMetricSource: { name: 'string', targetAverageUtilization: 'int32', targetAverageValue: 'quantity' },
    ContainerResourceMetricSource: { ...container, targetAverageUtilization: 'int32', targetAverageValue: 'quantity' },
    ExternalMetricSource: {
      metricName: 'string',
      metricSelector: selector,
      targetAverageValue: 'quantity',
      targetValue: 'quantity',
    },
    ObjectMetricStatus: {
      averageValue: 'quantity',
      currentValue: 'quantity',
      metricName: 'string',
      selector,
      target: reference,
    },
    PodsMetricStatus: { currentAverageValue: 'quantity', metricName: 'string', selector },
    ResourceMetricStatus: { currentAverageUtilization: 'int32', currentAverageValue: 'quantity', name: 'string' },
    ContainerResourceMetricStatus: {
      ...container,
      currentAverageUtilization: 'int32',
      currentAverageValue: 'quantity',
    },
    ExternalMetricStatus: {
      currentAverageValue: 'quantity',
      currentValue: 'quantity',
      metricName: 'string',
      metricSelector: selector,
    },
  };
  for (const suffix of ['Source', 'Status']) {
    types[suffix === 'Source' ? 'MetricSpec' : 'MetricStatus'] = {
      containerResource: local(`ContainerResourceMetric${suffix}`),
      external: local(`ExternalMetric${suffix}`),
      object: local(`ObjectMetric${suffix}`),
      pods: local(`PodsMetric${suffix}`),
      resource: local(`ResourceMetric${suffix}`),
      type: 'string',
    };
  }
  for (const [name, fields] of Object.entries(types)) own[named(`autoscaling.v2beta1.${name}`)] = { f: fields };
}

{
  const local = (name: string): string => `#${named(`policy.v1beta1.${name}`)}`;
  const type = (name: string, r: readonly string[], f: Readonly<Record<string, string>>): void => {
    own[named(`policy.v1beta1.${name}`)] = { ...(r.length === 0 ? {} : { r }), f };
  };
  const ranges = `[]${local('IDRange')}`;
  kind('policy.v1beta1.PodSecurityPolicy', { spec: local('PodSecurityPolicySpec') });
  type('PodSecurityPolicySpec', ['fsGroup', 'runAsUser', 'seLinux', 'supplementalGroups'], {
    allowPrivilegeEscalation: 'boolean',
    allowedCSIDrivers: `[]${local('AllowedCSIDriver')}`,
    allowedCapabilities: '[]string',
    allowedFlexVolumes: `[]${local('AllowedFlexVolume')}`,
    allowedHostPaths: `[]${local('AllowedHostPath')}`,
    allowedProcMountTypes: '[]string',
    allowedUnsafeSysctls: '[]string',
    defaultAddCapabilities: '[]string',
    defaultAllowPrivilegeEscalation: 'boolean',
    forbiddenSysctls: '[]string',
    fsGroup: local('FSGroupStrategyOptions'),
    hostIPC: 'boolean',
    hostNetwork: 'boolean',
    hostPID: 'boolean',
    hostPorts: `[]${local('HostPortRange')}`,
    privileged: 'boolean',
    readOnlyRootFilesystem: 'boolean',
    requiredDropCapabilities: '[]string',
    runAsGroup: local('RunAsGroupStrategyOptions'),
    runAsUser: local('RunAsUserStrategyOptions'),
    runtimeClass: local('RuntimeClassStrategyOptions'),
    seLinux: local('SELinuxStrategyOptions'),
    supplementalGroups: local('SupplementalGroupsStrategyOptions'),
    volumes: '[]string',
  });
  type('AllowedCSIDriver', ['name'], { name: 'string' });
  type('AllowedFlexVolume', ['driver'], { driver: 'string' });
  type('AllowedHostPath', [], { pathPrefix: 'string', readOnly: 'boolean' });
  type('HostPortRange', ['max', 'min'], { max: 'int32', min: 'int32' });
  type('IDRange', ['max', 'min'], { max: 'int64', min: 'int64' });
  type('FSGroupStrategyOptions', [], { ranges, rule: 'string' });
  type('RunAsGroupStrategyOptions', ['rule'], { ranges, rule: 'string' });
  type('RunAsUserStrategyOptions', ['rule'], { ranges, rule: 'string' });
  type('SupplementalGroupsStrategyOptions', [], { ranges, rule: 'string' });
  type('RuntimeClassStrategyOptions', ['allowedRuntimeClassNames'], {
    allowedRuntimeClassNames: '[]string',
    defaultRuntimeClassName: 'string',
  });
  type('SELinuxStrategyOptions', ['rule'], { rule: 'string', seLinuxOptions: `${CORE}.SELinuxOptions` });
}

{
  const measured = { timestamp: 'date-time', window: 'string' };
  kind('metrics.v1beta1.NodeMetrics', { ...measured, usage: '{}quantity' }, ['timestamp', 'usage', 'window']);
  const containers = `[]#${named('metrics.v1beta1.ContainerMetrics')}`;
  kind('metrics.v1beta1.PodMetrics', { ...measured, containers }, ['containers', 'timestamp', 'window']);
  own[named('metrics.v1beta1.ContainerMetrics')] = { r: ['name', 'usage'], f: { name: 'string', usage: '{}quantity' } };
}

export const olderTypes: Readonly<Record<string, GeneratedType>> = own;

/** Name of the equal stable type, or the given name if there is none. */
export function currentTypeName(typeName: string): string {
  return current.get(typeName) ?? typeName;
}
