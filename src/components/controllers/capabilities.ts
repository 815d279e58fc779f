/**
 * What a controller may use beside informers and writers of declared kinds. Each capability is declared in its
 * `ControllerSpec` and handed out by `ControllerHandle.use`, so that the table of controllers shows everything that a
 * controller can reach.
 */
import type { ImageStream, TagReference } from '../../api/kinds/imagestreams/types.ts';
import type { KubeObject, ResourceType } from '../../api/meta/object.ts';
import { type AccessAttributes, type Identity, reviewAccess } from '../../client/reviews.ts';
import type { ApiClient, Impersonated, Informer, ResourceClient } from '../../client/types.ts';
import type { CertificateSigner } from '../../core/reconcile/certificatesigningrequest/port.ts';
import type { ControllersDeps } from './deps.ts';
import { collectionPathOf, type Discovery, discover } from './discovery.ts';
import type { RouterFacts } from './ingress-router-port.ts';
import type { MachineConfigFacts } from './machine-config-port.ts';
import type { MachineProvisioner } from './machines-port.ts';
import type { CatalogFiles } from './olm/catalog-port.ts';

export interface Capabilities {
  /** Signs certificates with the cluster CA. */
  readonly signer: CertificateSigner;
  /** PEM bundle of the cluster CA. */
  readonly rootCaPem: string;
  /** What joining hosts learn from the cluster; undefined: no host can join. */
  readonly clusterFacts: ControllersDeps['clusterFacts'];
  /** Of routes; undefined: there is no router. */
  readonly router: RouterFacts | undefined;
  /** Merges fragments of machine configurations, and hashes them. */
  readonly machineConfig: MachineConfigFacts;
  /** Hosts and the store; undefined: hosts are not installed from here. */
  readonly machines: MachineProvisioner | undefined;
  /** Catalogs of operators on this host; undefined: there are none. */
  readonly catalogFiles: CatalogFiles | undefined;
  /** Signs the claims of a service account's token. */
  readonly signServiceAccountToken: ControllersDeps['signServiceAccountToken'];
  /** Lists the kinds that the server serves. */
  readonly discovery: (signal?: AbortSignal) => Promise<Discovery>;
  /** Objects of any kind that the server serves, known only at run time. */
  readonly anyKind: AnyKind;
  /** GET of a path below the API: the scale of kinds that are known only at run time. */
  readonly read: <R>(path: string, signal: AbortSignal) => Promise<R>;
  /** PUT of a scale; the scale's resourceVersion guards it. */
  readonly updateScale: (path: string, scale: object) => Promise<unknown>;
  /** A request with the permissions of another user, who is impersonated. */
  readonly requestAs: <R>(user: Impersonated, method: string, path: string, body?: unknown) => Promise<R>;
  /** Finds the image of a tag's source and records in the stream what was found. */
  readonly resolveTag: (stream: ImageStream, tag: TagReference) => Promise<void>;
  /** Asks the API server whether a subject may do something. */
  readonly accessReview: (identity: Identity, attributes: AccessAttributes) => Promise<boolean>;
}

export interface AnyKind {
  /** Metadata only. Stopped by the controller that needs it no longer. */
  informer(kind: ResourceType): Informer<KubeObject>;
  client(kind: ResourceType): ResourceClient<KubeObject>;
  /** Deletes every object of the kind in the namespace, in the background. */
  deleteCollection(kind: ResourceType, namespace: string): Promise<void>;
}

export function createCapabilities(deps: ControllersDeps): Capabilities {
  const { client, informers } = deps;
  return {
    signer: deps.signer,
    rootCaPem: deps.rootCaPem,
    clusterFacts: deps.clusterFacts,
    router: deps.router,
    machineConfig: deps.machineConfig,
    machines: deps.machines,
    catalogFiles: deps.catalogFiles,
    signServiceAccountToken: deps.signServiceAccountToken,
    discovery: (signal) => discover(client, signal),
    anyKind: {
      informer: (kind) => informers.informer<KubeObject>(kind, { metadataOnly: true }),
      client: (kind) => client.resource<KubeObject>(kind),
      deleteCollection: async (kind, namespace) => {
        const options = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' };
        await client.request('DELETE', collectionPathOf(kind, namespace), options);
      },
    },
    read: (path, signal) => client.request('GET', path, undefined, { signal }),
    updateScale: (path, scale) => client.request('PUT', path, scale),
    requestAs: (user, method, path, body) => client.request(method, path, body, { impersonate: user }),
    resolveTag: (stream, tag) => resolveTag(client, stream, tag),
    accessReview: (identity, attributes) => reviewAccess(client, identity, attributes),
  };
}

async function resolveTag(client: ApiClient, stream: ImageStream, tag: TagReference): Promise<void> {
  const { name = '', namespace = '' } = stream.metadata ?? {};
  const base = `/apis/image.openshift.io/v1/namespaces/${encodeURIComponent(namespace)}`;
  const apiVersion = 'image.openshift.io/v1';
  if (tag.from?.kind === 'DockerImage') {
    const { importPolicy, referencePolicy } = tag;
    const image = { from: tag.from, to: { name: tag.name }, importPolicy, referencePolicy };
    const spec = { import: true, images: [image] };
    const request = { apiVersion, kind: 'ImageStreamImport', metadata: { name, namespace }, spec };
    await client.request('POST', `${base}/imagestreamimports`, request);
    return;
  }
  const { generation: _g, ...wanted } = tag;
  const metadata = { name: `${name}:${tag.name}`, namespace };
  const path = `${base}/imagestreamtags/${encodeURIComponent(metadata.name)}`;
  await client.request('PUT', path, { apiVersion, kind: 'ImageStreamTag', metadata, tag: wanted });
}
