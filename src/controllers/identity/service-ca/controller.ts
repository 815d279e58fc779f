/** Issues serving certificates for services and injects the CA bundle. */
import type {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
} from '../../../api/generated/admissionregistration/v1.ts';
import type { CustomResourceDefinition } from '../../../api/generated/apiextensions/v1.ts';
import type { ConfigMap, Namespace, Secret, Service } from '../../../api/generated/core/v1.ts';
import type { APIService } from '../../../api/kinds/cluster/apiservices/conditions.ts';
import { type KubeObject, objectKey, type ResourceType } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { decodeBase64, encodeBase64 } from '../../../api/validation/base64.ts';
import type { Informer } from '../../../client/types.ts';
import { candidateWaker } from '../../framework/candidate-waker.ts';
import { createUnlessPresent } from '../../framework/create-unless-present.ts';
import type { ControllerHandle, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import {
  BUNDLE_KEY,
  conflictOf,
  hooksWithBundle,
  namesOf,
  needsConversionBundle,
  publishedMap,
  requestsBundle,
  SERVICE_CA_CONFIG_MAP,
  SIGNED_BY,
  secretNameOf,
  servingSecret,
} from './plan.ts';

const TLS_SECRETS = 'type=kubernetes.io/tls';
const RENEWAL_MS = 3_600_000;
const SIGNER = 'openshift-service-serving-signer';

export const serviceCaController: ControllerSpec = {
  name: 'service-ca',
  reads: [
    resources.namespaces,
    resources.services,
    resources.secrets,
    resources.configMaps,
    resources.apiServices,
    resources.customResourceDefinitions,
    resources.validatingWebhookConfigurations,
    resources.mutatingWebhookConfigurations,
  ],
  writes: [
    resources.services,
    resources.secrets,
    resources.configMaps,
    resources.apiServices,
    resources.customResourceDefinitions,
    resources.validatingWebhookConfigurations,
    resources.mutatingWebhookConfigurations,
  ],
  uses: ['rootCaPem', 'router'],
  prepare: (handle) => {
    const facts = handle.use('router');
    if (facts === undefined) return () => {};
    const services = handle.informer(resources.services);
    const secrets = handle.informer(resources.secrets, {
      fieldSelector: TLS_SECRETS,
      reduce: ({ metadata }) => ({ ...(metadata === undefined ? {} : { metadata }) }),
    });
    const injected = [configMaps(handle), apiServices(handle), conversions(handle), ...webhooks(handle)];
    const client = handle.writer(resources.secrets);
    const reported = new Map<string, string>();

    const serve = async (key: string): Promise<void> => {
      const service = services.get(key);
      const secretName = service === undefined ? undefined : secretNameOf(service);
      if (service === undefined || secretName === undefined) return void reported.delete(key);
      const { namespace = '', name = '' } = service.metadata ?? {};
      const present = await client.get(secretName, namespace).catch((error: unknown) => {
        if (isApiError(error, 'NotFound')) return undefined;
        throw error;
      });
      const conflict = conflictOf(service, present);
      if (conflict !== undefined) {
        if (reported.get(key) !== conflict)
          handle.recorder.event(service, 'Warning', 'ServingCertificateFailed', conflict);
        reported.set(key, conflict);
        return;
      }
      reported.delete(key);
      const names = namesOf(service, facts.clusterDomain);
      const pem = decodeBase64(present?.data?.['tls.crt'] ?? '') ?? '';
      if (present === undefined || facts.needsRenewal(pem, names)) {
        const { certPem, keyPem } = await facts.issue(names);
        const data = { 'tls.crt': encodeBase64(certPem), 'tls.key': encodeBase64(keyPem) };
        if (present === undefined) await client.create(servingSecret(service, secretName, data));
        else await ignoreNotFound(() => client.patch(secretName, namespace, 'merge', { data }));
      }
      if (service.metadata?.annotations?.[SIGNED_BY] === SIGNER) return;
      const metadata = { annotations: { [SIGNED_BY]: SIGNER } };
      await ignoreNotFound(() => handle.writer(resources.services).patch(name, namespace, 'merge', { metadata }));
    };

    return (scope) => {
      const queue = scope.queue(serve, 1);
      const wake = (service: Service): void => {
        if (secretNameOf(service) !== undefined || reported.has(objectKey(service))) queue.add(objectKey(service));
      };
      scope.onChange(services, { added: wake, updated: wake });
      const wakeServices = candidateWaker(scope, services, (service) => queue.add(objectKey(service)));
      const wakeForSecret = ({ metadata }: Secret): void =>
        wakeServices(metadata?.namespace, (service) => secretNameOf(service) === metadata?.name);
      scope.onChange(secrets, { deleted: wakeForSecret });
      scope.every(RENEWAL_MS, () => services.list().forEach(wake));
      for (const start of injected) start(scope);
    };
  },
};

/** Watches the objects of a kind that request the CA bundle. */
type Injection = (scope: RunScope) => void;

function injection<T extends KubeObject>(informer: Informer<T>, write: (object: T) => Promise<void>): Injection {
  return (scope) => {
    const queue = scope.queue(async (key) => {
      const object = informer.get(key);
      if (object !== undefined && requestsBundle(object)) await write(object);
    }, 1);
    const wake = (object: T): void => {
      if (requestsBundle(object)) queue.add(objectKey(object));
    };
    scope.onChange(informer, { added: wake, updated: wake });
  };
}

/**
 * Injection into config maps. Config maps are written often, also by tenants. Therefore only config maps with the
 * published name are watched with their contents. For other config maps, the garbage collector's watch of metadata is
 * used.
 */
function configMaps(handle: ControllerHandle): Injection {
  const bundle = handle.use('rootCaPem');
  const client = handle.writer(resources.configMaps);
  const published = handle.informer(resources.configMaps, { fieldSelector: `metadata.name=${SERVICE_CA_CONFIG_MAP}` });
  const others = handle.informer(resources.configMaps, { metadataOnly: true });
  const namespaces = handle.informer(resources.namespaces);
  const write = async ({ metadata, data }: ConfigMap): Promise<void> => {
    if (data?.[BUNDLE_KEY] === bundle) return;
    const change = { data: { [BUNDLE_KEY]: bundle } };
    await ignoreNotFound(() => client.patch(metadata?.name ?? '', metadata?.namespace, 'merge', change));
  };
  const injectPublished = injection(published, write);
  const injectOthers = injection(others, async ({ metadata }) => {
    const { name = '', namespace } = metadata ?? {};
    if (name !== SERVICE_CA_CONFIG_MAP) await ignoreNotFound(async () => write(await client.get(name, namespace)));
  });
  const publish = async (namespace: string): Promise<void> => {
    const present = published.get(`${namespace}/${SERVICE_CA_CONFIG_MAP}`);
    const map = publishedMap(namespaces.get(namespace), present, bundle);
    if (map === undefined) return;
    const name = SERVICE_CA_CONFIG_MAP;
    if (present !== undefined) await ignoreNotFound(() => client.patch(name, namespace, 'merge', { ...map }));
    else await createUnlessPresent(() => client.create({ ...map, metadata: { ...map.metadata, name, namespace } }));
  };
  return (scope) => {
    injectPublished(scope);
    injectOthers(scope);
    const queue = scope.queue(publish, 4);
    const wakeNamespace = ({ metadata }: Namespace): void => queue.add(metadata?.name ?? '');
    scope.onChange(namespaces, { added: wakeNamespace, updated: wakeNamespace });
    const wake = ({ metadata }: ConfigMap): void => queue.add(metadata?.namespace ?? '');
    scope.onChange(published, { added: wake, updated: wake, deleted: wake });
  };
}

/** Injection into the conversion webhooks of custom resource definitions. */
function conversions(handle: ControllerHandle): Injection {
  const caBundle = encodeBase64(handle.use('rootCaPem'));
  const client = handle.writer(resources.customResourceDefinitions);
  const informer = handle.informer(resources.customResourceDefinitions, { reduce: withoutVersions });
  return injection(informer, async (definition) => {
    if (!needsConversionBundle(definition, caBundle)) return;
    const change = { spec: { conversion: { webhook: { clientConfig: { caBundle } } } } };
    await ignoreNotFound(() => client.patch(definition.metadata?.name ?? '', undefined, 'merge', change));
  });
}

/** Definition without its versions, whose schemas can be large and are not needed here. */
const withoutVersions = (definition: CustomResourceDefinition): CustomResourceDefinition => ({
  ...definition,
  spec: { ...definition.spec, versions: [] },
});

function apiServices(handle: ControllerHandle): Injection {
  const caBundle = encodeBase64(handle.use('rootCaPem'));
  const client = handle.writer(resources.apiServices);
  return injection<APIService>(handle.informer(resources.apiServices), async ({ metadata, spec }) => {
    if (spec?.service === undefined || spec.caBundle === caBundle) return;
    await ignoreNotFound(() => client.patch(metadata?.name ?? '', undefined, 'merge', { spec: { caBundle } }));
  });
}

function webhooks(handle: ControllerHandle): Injection[] {
  const caBundle = encodeBase64(handle.use('rootCaPem'));
  const of = <T extends ValidatingWebhookConfiguration | MutatingWebhookConfiguration>(
    type: ResourceType<T>,
  ): Injection =>
    injection<T>(handle.informer(type), async (configuration) => {
      const changed = hooksWithBundle(configuration.webhooks ?? [], caBundle);
      if (changed === undefined) return;
      await ignoreNotFound(() => handle.writer(type).update({ ...configuration, webhooks: changed } as T));
    });
  return [of(resources.validatingWebhookConfigurations), of(resources.mutatingWebhookConfigurations)];
}
