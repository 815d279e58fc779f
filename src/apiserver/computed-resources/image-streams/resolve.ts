/** Resolves image names by the image stores that hosts report and by the tags of image streams. */
import type { Node } from '../../../api/generated/core/v1.ts';
import {
  HOST_PROGRAMS_IMAGE,
  HOST_ROOT_ID,
  HOST_ROOT_IMAGE,
  isHostRootImage,
} from '../../../api/podspec/host-root-image.ts';
import {
  type FoundImage,
  latestEvent,
  type PullSpec,
  parsePullSpec,
  splitTagName,
} from '../../../openshift/image-streams/core/index.ts';
import type { Image } from '../../../openshift/image-streams/kinds/images/index.ts';
import type { ImageStream, TagReference } from '../../../openshift/image-streams/kinds/imagestreams/types.ts';
import type { WatchCache } from '../../watch-cache/watch-cache.ts';

export const STREAMS = 'openshift.io/imagestreams';
const IMAGES = 'openshift.io/images';
const MASTER_LABEL = 'node-role.kubernetes.io/master';

export type Resolution = FoundImage | { readonly reason: string; readonly message: string };

export const isFound = (resolution: Resolution): resolution is FoundImage => 'pullSpec' in resolution;

export function streamOf(cache: WatchCache, namespace: string, name: string): ImageStream | undefined {
  return cache.kind(STREAMS).get(namespace, name)?.shared<ImageStream>();
}

/** Resolves a name from the image stores of the hosts only; no registry is queried. */
export function resolveName(cache: WatchCache, name: string): Resolution {
  if (isHostRootImage(name)) {
    const pullSpec = name === HOST_PROGRAMS_IMAGE ? name : `${HOST_ROOT_IMAGE}:latest`;
    return { image: HOST_ROOT_ID, pullSpec };
  }
  const wanted = parsePullSpec(name);
  if (wanted === undefined)
    return { reason: 'InvalidName', message: `${JSON.stringify(name)} is not a valid image name` };
  const nodes = [...cache.kind('minions')].map((each) => each.shared<Node>());
  const { digest, problem } = reportedDigest(nodes, wanted);
  if (digest !== undefined) return { image: digest, pullSpec: `${wanted.repository}@${digest}` };
  return { reason: 'NotFound', message: `dockerimage.image.openshift.io "${wanted.name}" ${problem}` };
}

/**
 * Digest that hosts report for a name. Only reports for the same repository are used. The report of a master or of the
 * only node is sufficient; otherwise two nodes must agree, and no node may report another digest.
 */
export function reportedDigest(
  nodes: readonly Node[],
  { name, repository, digest: requestedDigest }: PullSpec,
): { readonly digest: string; readonly problem?: never } | { readonly digest?: never; readonly problem: string } {
  const reports = nodes.flatMap((node) => {
    const found = digestsAt(node, name, repository).filter(
      (each) => requestedDigest === undefined || each === requestedDigest,
    );
    return found.map((digest) => ({ digest, isMaster: node.metadata?.labels?.[MASTER_LABEL] !== undefined }));
  });
  const ofMasters = reports.filter(({ isMaster }) => isMaster);
  const counted = ofMasters.length > 0 ? ofMasters : reports;
  const [first] = counted;
  if (first === undefined) return { problem: 'not found in the image store of any host' };
  if (counted.some(({ digest }) => digest !== first.digest))
    return { problem: 'is not the same image in the stores of all hosts; import the same one, or use a digest' };
  // An image named by its digest is verified when it is pulled.
  const isEnough = ofMasters.length > 0 || requestedDigest !== undefined || counted.length > 1 || nodes.length === 1;
  return isEnough
    ? { digest: first.digest }
    : { problem: 'is reported by one node only; import it on a master, or configure its registry' };
}

function digestsAt({ status }: Node, name: string, repository: string): string[] {
  const found = (status?.images ?? []).flatMap(({ names }) => {
    const all = names ?? [];
    return all.includes(name) ? all.filter((each) => each.startsWith(`${repository}@`)) : [];
  });
  return [...new Set(found.flatMap((each) => parsePullSpec(each)?.digest ?? []))];
}

/** Resolves the image of a tag's source. */
export function resolveSource(cache: WatchCache, namespace: string, { from }: Pick<TagReference, 'from'>): Resolution {
  const { kind = '', name = '' } = from ?? {};
  const place = from?.namespace || namespace;
  if (kind === 'DockerImage') return resolveName(cache, name);
  if (kind === 'ImageStreamTag') {
    const parts = splitTagName(name);
    const event = parts === undefined ? undefined : latestEvent(streamOf(cache, place, parts.stream), parts.tag);
    return found(event) ?? { reason: 'NotFound', message: `imagestreamtags.image.openshift.io "${name}" not found` };
  }
  const [stream = '', image = ''] = name.split('@');
  const events = (streamOf(cache, place, stream)?.status?.tags ?? []).flatMap(({ items = [] }) => items);
  const event = events.find((each) => each.image === image);
  return found(event) ?? { reason: 'NotFound', message: `imagestreamimages.image.openshift.io "${name}" not found` };
}

function found(event: { image?: string; dockerImageReference?: string } | undefined): FoundImage | undefined {
  if (event?.image === undefined || event.dockerImageReference === undefined) return undefined;
  return { image: event.image, pullSpec: event.dockerImageReference };
}

/** The stored Image. If no Image is stored, an Image with the known fields. */
export function imageOf(cache: WatchCache, { image, pullSpec }: FoundImage, createdAt?: string): Image {
  const stored = cache.kind(IMAGES).get('', image)?.parse<Image>();
  const { managedFields: _m, ...metadata } = stored?.metadata ?? {};
  return {
    dockerImageMetadata: {},
    dockerImageMetadataVersion: '1.0',
    ...stored,
    metadata: { name: image, ...(createdAt === undefined ? {} : { creationTimestamp: createdAt }), ...metadata },
    dockerImageReference: pullSpec,
  };
}
