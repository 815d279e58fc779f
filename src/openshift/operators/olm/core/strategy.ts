/**
 * Objects with which an operator version runs: deployments, services and their certificates, webhooks and aggregated
 * APIs. Source: operator-lifecycle-manager pkg/controller/install.
 */
import type { Deployment } from '../../../../api/generated/apps/v1.ts';
import type { Container, EnvVar, PodSpec, Service, Volume, VolumeMount } from '../../../../api/generated/core/v1.ts';
import type { OwnerReference } from '../../../../api/generated/meta/v1.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';
import type {
  ClusterServiceVersion,
  StrategyDeployment,
  SubscriptionConfig,
  WebhookDescription,
} from '../kinds/types.ts';
import { digestOf, nameWithDigest, ownerLabels, SPEC_HASH_LABEL } from './names.ts';

/** Annotations of the CSV that are not copied to pods, because they are too large or useless there. */
const NOT_FOR_PODS: ReadonlySet<string> = new Set([
  'alm-examples',
  'kubectl.kubernetes.io/last-applied-configuration',
  'operatorframework.io/properties',
]);

export function ownerReference({ metadata }: ClusterServiceVersion): OwnerReference {
  return {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    blockOwnerDeletion: false,
    controller: false,
  };
}

export interface DeploymentContext {
  /** Annotations for pods that describe the operator group, such as olm.targetNamespaces. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly config: SubscriptionConfig;
  /**
   * Digests of serving certificates, by deployment. They are part of the pod template, so a new certificate restarts
   * the pods.
   */
  readonly certificates: ReadonlyMap<string, string>;
}

export function deploymentsOf(csv: ClusterServiceVersion, context: DeploymentContext): Deployment[] {
  return (csv.spec?.install?.spec?.deployments ?? []).map((each) => deploymentOf(csv, each, context));
}

function deploymentOf(csv: ClusterServiceVersion, given: StrategyDeployment, context: DeploymentContext): Deployment {
  const { name = '', label } = given;
  const { config } = context;
  const spec = given.spec ?? { selector: {}, template: {} };
  const inherited = Object.entries(csv.metadata?.annotations ?? {}).filter(([key]) => !NOT_FOR_PODS.has(key));
  const annotations = { ...Object.fromEntries(inherited), ...context.annotations, ...config.annotations };
  const certificate = context.certificates.get(name);
  const wanted: Deployment['spec'] = {
    ...spec,
    replicas: spec.replicas ?? 1,
    revisionHistoryLimit: spec.revisionHistoryLimit ?? 1,
    template: {
      ...spec.template,
      metadata: {
        ...spec.template.metadata,
        annotations: {
          ...spec.template.metadata?.annotations,
          ...annotations,
          ...(certificate === undefined ? {} : { olmcahash: certificate }),
        },
      },
      spec: podSpecOf(csv, spec.template.spec, config, certificate === undefined ? undefined : secretName(name)),
    },
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name,
      namespace: csv.metadata?.namespace ?? '',
      labels: { ...label, ...ownerLabels(csv), [SPEC_HASH_LABEL]: digestOf(wanted) },
      ...(config.annotations === undefined ? {} : { annotations: config.annotations }),
      ownerReferences: [ownerReference(csv)],
    },
    spec: wanted,
  };
}

function podSpecOf(
  csv: ClusterServiceVersion,
  given: PodSpec | undefined,
  config: SubscriptionConfig,
  certificates: string | undefined,
): PodSpec {
  const pod = given ?? { containers: [] };
  const serving = certificates === undefined ? undefined : servingVolumes(certificates);
  const mounts = [...(config.volumeMounts ?? []), ...(serving?.mounts ?? [])];
  const volumes = byName(pod.volumes ?? [], [...(config.volumes ?? []), ...(serving?.volumes ?? [])]);
  const condition: EnvVar = { name: 'OPERATOR_CONDITION_NAME', value: csv.metadata?.name ?? '' };
  const configured = (container: Container): Container => ({
    ...container,
    env: byName(container.env ?? [], [...(config.env ?? []), condition]),
    ...(config.envFrom === undefined ? {} : { envFrom: [...(container.envFrom ?? []), ...config.envFrom] }),
    ...(config.resources === undefined ? {} : { resources: config.resources }),
    ...(mounts.length === 0 ? {} : { volumeMounts: byPath(container.volumeMounts ?? [], mounts) }),
  });
  return {
    ...pod,
    containers: pod.containers.map(configured),
    ...(volumes.length === 0 ? {} : { volumes }),
    ...(config.nodeSelector === undefined ? {} : { nodeSelector: config.nodeSelector }),
    ...(config.affinity === undefined ? {} : { affinity: { ...pod.affinity, ...config.affinity } }),
    ...(config.tolerations === undefined ? {} : { tolerations: [...(pod.tolerations ?? []), ...config.tolerations] }),
  };
}

const byName = <T extends { readonly name: string }>(own: readonly T[], added: readonly T[]): T[] => [
  ...own.filter(({ name }) => !added.some((each) => each.name === name)),
  ...added,
];

const byPath = (own: readonly VolumeMount[], added: readonly VolumeMount[]): VolumeMount[] => [
  ...own.filter(({ mountPath }) => !added.some((each) => each.mountPath === mountPath)),
  ...added,
];

/** Volumes and mounts for the paths from which aggregated API servers and webhook servers read their certificates. */
function servingVolumes(secret: string): { volumes: Volume[]; mounts: VolumeMount[] } {
  const volume = (name: string, cert: string, key: string): Volume => ({
    name,
    secret: {
      secretName: secret,
      items: [
        { key: 'tls.crt', path: cert },
        { key: 'tls.key', path: key },
      ],
    },
  });
  return {
    volumes: [
      volume('apiservice-cert', 'apiserver.crt', 'apiserver.key'),
      volume('webhook-cert', 'tls.crt', 'tls.key'),
    ],
    mounts: [
      { name: 'apiservice-cert', mountPath: '/apiserver.local.config/certificates' },
      { name: 'webhook-cert', mountPath: '/tmp/k8s-webhook-server/serving-certs' },
    ],
  };
}

/**
 * Name of the service of a deployment that serves webhooks or APIs. The secret of its certificate has the suffix
 * `-cert`.
 */
export const serviceName = (deployment: string): string => `${deployment.replaceAll('.', '-')}-service`;
export const secretName = (deployment: string): string => `${serviceName(deployment)}-cert`;

export const dnsNamesOf = (deployment: string, namespace: string): string[] => [
  `${serviceName(deployment)}.${namespace}`,
  `${serviceName(deployment)}.${namespace}.svc`,
];

interface Served {
  readonly deployment: string;
  readonly port: number;
  readonly targetPort: number | string;
}

/** Ports of the deployments that serve webhooks or aggregated APIs, one entry per port. */
function servedBy({ spec }: ClusterServiceVersion): Served[] {
  const webhooks = (spec?.webhookdefinitions ?? []).map(({ deploymentName = '', containerPort = 443, targetPort }) => ({
    deployment: deploymentName,
    port: containerPort,
    targetPort: targetPort ?? containerPort,
  }));
  const apis = (spec?.apiservicedefinitions?.owned ?? []).map(({ deploymentName = '', containerPort = 443 }) => ({
    deployment: deploymentName,
    port: containerPort,
    targetPort: containerPort,
  }));
  return [...webhooks, ...apis];
}

/** Names of deployments that need a serving certificate. A CSV may name deployments here that it does not define. */
export function servingDeployments(csv: ClusterServiceVersion): string[] {
  return [...new Set(servedBy(csv).map((each) => each.deployment))].sort();
}

export function unknownDeployment(csv: ClusterServiceVersion): string | undefined {
  const known = new Set((csv.spec?.install?.spec?.deployments ?? []).map(({ name }) => name));
  return servingDeployments(csv).find((each) => !known.has(each));
}

export function servicesOf(csv: ClusterServiceVersion): Service[] {
  const served = servedBy(csv);
  return servingDeployments(csv).map((deployment) => {
    const ports = new Map(served.filter((each) => each.deployment === deployment).map((each) => [each.port, each]));
    const selector = (csv.spec?.install?.spec?.deployments ?? []).find(({ name }) => name === deployment)?.spec
      ?.selector.matchLabels;
    return {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name: serviceName(deployment),
        namespace: csv.metadata?.namespace ?? '',
        labels: ownerLabels(csv),
        ownerReferences: [ownerReference(csv)],
      },
      spec: {
        ports: [...ports.values()].map(({ port, targetPort }) => ({ name: String(port), port, targetPort })),
        ...(selector === undefined ? {} : { selector }),
      },
    };
  });
}

const TYPES: Readonly<Record<string, string>> = {
  ValidatingAdmissionWebhook: 'ValidatingWebhookConfiguration',
  MutatingAdmissionWebhook: 'MutatingWebhookConfiguration',
};

/**
 * Configurations of the operator's admission webhooks. `caBundle` is PEM in base64. If the operator does not watch all
 * namespaces, the webhooks are limited to its target namespaces. A namespace selector does not exclude cluster-scoped
 * objects, so the rules of these webhooks match only namespaced resources.
 */
export function webhookConfigurations(
  csv: ClusterServiceVersion,
  targets: readonly string[],
  caBundle: string,
): KubeObject[] {
  const { name = '', namespace = '' } = csv.metadata ?? {};
  const isLimited = !targets.includes('');
  const limit = !isLimited
    ? {}
    : {
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: [...targets] }],
        },
      };
  return (csv.spec?.webhookdefinitions ?? []).flatMap((webhook, index) => {
    const kind = TYPES[webhook.type ?? ''];
    const rules = webhook.rules?.filter(({ scope }) => !isLimited || scope !== 'Cluster');
    if (kind === undefined || (webhook.rules !== undefined && rules?.length === 0)) return [];
    const configuration = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind,
      metadata: {
        name: nameWithDigest(webhook.generateName ?? '', { name, namespace, index }),
        labels: { ...ownerLabels(csv), 'olm.webhook-description-generate-name': webhook.generateName ?? '' },
      },
      webhooks: [
        {
          ...admissionWebhook(webhook, namespace, caBundle),
          ...limit,
          ...(isLimited && rules !== undefined
            ? { rules: rules.map((rule) => ({ ...rule, scope: 'Namespaced' })) }
            : {}),
        },
      ],
    };
    return [configuration as KubeObject];
  });
}

function admissionWebhook(webhook: WebhookDescription, namespace: string, caBundle: string): object {
  const { generateName, type, rules, failurePolicy, matchPolicy, objectSelector, sideEffects } = webhook;
  const optional = {
    rules,
    failurePolicy,
    matchPolicy,
    objectSelector,
    timeoutSeconds: webhook.timeoutSeconds,
    reinvocationPolicy: type === 'MutatingAdmissionWebhook' ? webhook.reinvocationPolicy : undefined,
  };
  return {
    name: generateName,
    sideEffects,
    admissionReviewVersions: webhook.admissionReviewVersions,
    clientConfig: clientConfig(webhook, namespace, caBundle),
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)),
  };
}

function clientConfig(webhook: WebhookDescription, namespace: string, caBundle: string): object {
  const { deploymentName = '', webhookPath, containerPort = 443 } = webhook;
  return {
    caBundle,
    service: {
      name: serviceName(deploymentName),
      namespace,
      port: containerPort,
      ...(webhookPath === undefined ? {} : { path: webhookPath }),
    },
  };
}

export interface ConversionPatch {
  readonly crd: string;
  readonly conversion: object;
}

/**
 * Conversion settings of the custom resources that the operator converts. Only custom resources that it owns are
 * included.
 */
export function conversionsOf(csv: ClusterServiceVersion, caBundle: string): ConversionPatch[] {
  const owned = new Set((csv.spec?.customresourcedefinitions?.owned ?? []).map(({ name }) => name));
  return (csv.spec?.webhookdefinitions ?? [])
    .filter(({ type }) => type === 'ConversionWebhook')
    .flatMap((webhook) =>
      (webhook.conversionCRDs ?? [])
        .filter((crd) => owned.has(crd))
        .map((crd) => ({
          crd,
          conversion: {
            strategy: 'Webhook',
            webhook: {
              conversionReviewVersions: webhook.admissionReviewVersions ?? ['v1'],
              clientConfig: clientConfig(webhook, csv.metadata?.namespace ?? '', caBundle),
            },
          },
        })),
    );
}

export function apiServicesOf(csv: ClusterServiceVersion, caBundle: string): KubeObject[] {
  const owned = csv.spec?.apiservicedefinitions?.owned ?? [];
  const byVersion = new Map(owned.map((each) => [`${each.version}.${each.group}`, each]));
  return [...byVersion].map(([name, { group, version, deploymentName = '', containerPort = 443 }]) => {
    const service = {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name, labels: ownerLabels(csv) },
      spec: {
        group,
        version,
        groupPriorityMinimum: 2000,
        versionPriority: 15,
        caBundle,
        service: { name: serviceName(deploymentName), namespace: csv.metadata?.namespace ?? '', port: containerPort },
      },
    };
    return service as KubeObject;
  });
}
