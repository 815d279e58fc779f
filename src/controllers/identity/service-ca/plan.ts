/**
 * Serving certificates of services, and injection of their CA bundle. Source: openshift/service-ca-operator
 * pkg/controller/servingcert and pkg/controller/cabundleinjector.
 */

import type { CustomResourceDefinition } from '../../../api/generated/apiextensions/v1.ts';
import type { ConfigMap, Namespace, Secret, Service } from '../../../api/generated/core/v1.ts';
import type { KubeObject } from '../../../api/meta/object.ts';

const PREFIX = 'service.beta.openshift.io';
const OLD_PREFIX = 'service.alpha.openshift.io';
export const SIGNED_BY = `${PREFIX}/serving-cert-signed-by`;
const ORIGIN = `${PREFIX}/originating-service-name`;
const ORIGIN_UID = `${PREFIX}/originating-service-uid`;
export const BUNDLE_KEY = 'service-ca.crt';
/** Config map with the bundle in every namespace. */
export const SERVICE_CA_CONFIG_MAP = 'openshift-service-ca.crt';
const INJECT = `${PREFIX}/inject-cabundle`;
/** Services whose names belong to the API server, so they get no certificate here. */
const API_SERVICES: ReadonlySet<string> = new Set(['default/kubernetes', 'default/openshift']);

const annotationOf = ({ metadata }: KubeObject, name: string): string | undefined =>
  metadata?.annotations?.[`${PREFIX}/${name}`] ?? metadata?.annotations?.[`${OLD_PREFIX}/${name}`];

/** Name of the secret in which the service requests its certificate. */
export function secretNameOf(service: Service): string | undefined {
  const name = annotationOf(service, 'serving-cert-secret-name');
  return name === '' || service.metadata?.deletionTimestamp !== undefined ? undefined : name;
}

export const requestsBundle = (object: KubeObject): boolean => annotationOf(object, 'inject-cabundle') === 'true';

export function namesOf({ metadata, spec }: Service, clusterDomain: string): string[] {
  const name = `${metadata?.name}.${metadata?.namespace}.svc`;
  const all = [name, `${name}.${clusterDomain}`];
  return spec?.clusterIP === 'None' ? [...all, ...all.map((each) => `*.${each}`)] : all;
}

/** Reason why the service's certificate cannot be stored in this secret; undefined if it can. */
export function conflictOf(service: Service, secret: Secret | undefined): string | undefined {
  const { namespace, name, uid } = service.metadata ?? {};
  if (API_SERVICES.has(`${namespace}/${name}`)) return 'the DNS names of this service are reserved for the API server';
  if (secret === undefined) return undefined;
  const { [ORIGIN]: origin, [ORIGIN_UID]: originUid } = secret.metadata?.annotations ?? {};
  if (origin === name && originUid === uid) return undefined;
  return `secret ${secret.metadata?.name} exists and does not belong to this service; delete it or use another name`;
}

/** Creates the kubernetes.io/tls secret; `data` is in base64. */
export function servingSecret(service: Service, secretName: string, data: Readonly<Record<string, string>>): Secret {
  const { name = '', namespace = '', uid = '' } = service.metadata ?? {};
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: secretName,
      namespace,
      annotations: { [ORIGIN]: name, [ORIGIN_UID]: uid },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name, uid }],
    },
    type: 'kubernetes.io/tls',
    data: { ...data },
  };
}

/** Fields of the namespace's config map with the bundle; undefined if there is nothing to write. */
export function publishedMap(
  namespace: Namespace | undefined,
  present: ConfigMap | undefined,
  bundle: string,
): Pick<ConfigMap, 'metadata' | 'data'> | undefined {
  if (namespace === undefined || namespace.metadata?.deletionTimestamp !== undefined) return undefined;
  if (present !== undefined && requestsBundle(present)) return undefined;
  return { metadata: { annotations: { [INJECT]: 'true' } }, data: { [BUNDLE_KEY]: bundle } };
}

/** Whether the definition has a conversion webhook whose bundle differs from `bundle` (in base64). */
export const needsConversionBundle = ({ spec }: CustomResourceDefinition, bundle: string): boolean =>
  spec.conversion?.webhook?.clientConfig !== undefined && spec.conversion.webhook.clientConfig.caBundle !== bundle;

interface Hook {
  readonly name?: string;
  readonly clientConfig?: { readonly caBundle?: string };
}

/** Returns the webhooks with the bundle (in base64); undefined if all webhooks already have it. */
export function hooksWithBundle<T extends Hook>(hooks: readonly T[], bundle: string): T[] | undefined {
  if (hooks.every(({ clientConfig }) => clientConfig?.caBundle === bundle)) return undefined;
  return hooks.map((hook) => ({ ...hook, clientConfig: { ...hook.clientConfig, caBundle: bundle } }));
}
