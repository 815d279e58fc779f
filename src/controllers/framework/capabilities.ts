/**
 * Capabilities of controllers beyond informers and writers of declared kinds. A controller declares them in its
 * `ControllerSpec` and gets them from `ControllerHandle.use`, so the table of controllers shows everything that a
 * controller can access.
 */

import type { CertificateSigner } from '../../api/kinds/identity/certificatesigningrequests/signer-port.ts';
import type { KubeObject, ResourceType } from '../../api/meta/object.ts';
import { type AccessAttributes, type Identity, reviewAccess } from '../../client/reviews.ts';
import type { ApiClient, Impersonated, Informer, ResourceClient } from '../../client/types.ts';
import type { RouterFacts } from '../../network/router/controllers/ingress-router-port.ts';
import type { ImageStream, TagReference } from '../../openshift/image-streams/kinds/imagestreams/types.ts';
import type { MachineConfigFacts } from '../../openshift/machine-config/controllers/machine-config-port.ts';
import type { MachineProvisioner } from '../../openshift/machines/machines-port.ts';
import type { CatalogFiles } from '../../openshift/operators/olm/controllers/catalog-port.ts';
import type { ControllersDeps } from './deps.ts';
import { collectionPathOf, type Discovery, discoverKinds } from './discovery.ts';

export interface Capabilities {
  readonly signer: CertificateSigner;
  readonly rootCaPem: string;
  /** Cluster data that is published for joining hosts. If undefined, no host can join. */
  readonly clusterFacts: ControllersDeps['clusterFacts'];
  /** Address of a node's host in the gossip ring; undefined if it is not a member or there is no ring. */
  readonly ringAddress: (nodeName: string) => string | undefined;
  /** Settings of the router; undefined when another installation serves the routes. */
  readonly router: RouterFacts | undefined;
  /** Merges fragments of machine configurations, and hashes them. */
  readonly machineConfig: MachineConfigFacts;
  /** Provisions hosts and store members. Undefined when hosts are not installed from this cluster. */
  readonly machines: MachineProvisioner | undefined;
  /** Operator catalogs on this host. Undefined when there are none. */
  readonly catalogFiles: CatalogFiles | undefined;
  /** Signs the claims of a service account's token. */
  readonly signServiceAccountToken: ControllersDeps['signServiceAccountToken'];
  /** Lists the kinds that the server serves. */
  readonly discovery: (signal?: AbortSignal) => Promise<Discovery>;
  /** Objects of kinds that are known only at run time. */
  readonly anyKind: AnyKind;
  /** GET of an API path, for the scale of kinds that are known only at run time. */
  readonly read: <R>(path: string, signal: AbortSignal) => Promise<R>;
  /** PUT of a scale, conditional on the scale's resourceVersion. */
  readonly updateScale: (path: string, scale: object) => Promise<unknown>;
  /** Sends a request that impersonates another user. */
  readonly requestAs: <R>(user: Impersonated, method: string, path: string, body?: unknown) => Promise<R>;
  /** Resolves the image of a tag's source and records it in the stream. */
  readonly resolveTag: (stream: ImageStream, tag: TagReference) => Promise<void>;
  /** Queries the API server whether a subject is permitted an action. */
  readonly accessReview: (identity: Identity, attributes: AccessAttributes) => Promise<boolean>;
}

export interface AnyKind {
  /** Metadata-only informer. The controller stops it when it is no longer needed. */
  informer(kind: ResourceType): Informer<KubeObject>;
  client(kind: ResourceType): ResourceClient<KubeObject>;
  /** Deletes every object of the kind in the namespace, with background propagation. */
  deleteCollection(kind: ResourceType, namespace: string): Promise<void>;
}

export function createCapabilities(deps: ControllersDeps): Capabilities {
  const { client, informers } = deps;
  return {
    signer: deps.signer,
    rootCaPem: deps.rootCaPem,
    clusterFacts: deps.clusterFacts,
    ringAddress: deps.ringAddress ?? (() => undefined),
    router: deps.router,
    machineConfig: deps.machineConfig,
    machines: deps.machines,
    catalogFiles: deps.catalogFiles,
    signServiceAccountToken: deps.signServiceAccountToken,
    discovery: (signal) => discoverKinds(client, signal),
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
