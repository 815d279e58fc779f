/**
 * The reserved image `hyperedge.local/host-root`: the host's own root, read-only, which the control plane's static pods
 * run from. It is for manifests of the node's own directory, and for containers that have all of the host anyway; API
 * server, kubelet, runtime and image store all ask the rules of this file.
 */
import type { Container, Pod } from 'kubernetes-types/core/v1';

export const HOST_ROOT_IMAGE = 'hyperedge.local/host-root';

/**
 * The host's programs alone, without its configuration, state and users' files: what `oc adm must-gather` runs from.
 * Only this spelling is one; pods of namespaces `openshift-…`, which only administrators make, may name it.
 */
export const HOST_PROGRAMS_IMAGE = `${HOST_ROOT_IMAGE}:programs`;
const SYSTEM_NAMESPACES = 'openshift-';

/** SHA-256 of the name, in the form of a digest: nothing of that digest is ever stored. */
const DIGEST = 'b2a643d7931c38a1f607e703aab40c181a43aacb80b4348a4a68819183a45b5a';
export const HOST_ROOT_ID = `sha256:${DIGEST}`;

/**
 * Where a kubelet has a manifest from: its directory, its URL, the node's key in the store, or the local submit API.
 */
export const MANIFEST_SOURCES = ['file', 'http', 'store', 'submitted'] as const;
export type ManifestSourceKind = (typeof MANIFEST_SOURCES)[number];

/** Where a kubelet has a pod from. */
export type PodSource = ManifestSourceKind | 'api';

/** The one decision about who may use the image; a pod of the API server is never the node's own. */
export const mayUseHostRoot = (source: PodSource): boolean => source === 'file';

/**
 * Any spelling: tag, digest, id with or without algorithm, letter case, port, and the registry that plain names default
 * to.
 */
export function isHostRootImage(image: string): boolean {
  const name = image.trim().toLowerCase();
  if (name.includes(DIGEST)) return true;
  const [repository = ''] = name.split('@', 1);
  const untagged = repository.replace(/:[^/]*$/, '');
  const plain = untagged.replace(/^(?:index\.)?docker\.io\//, '').replace(/^library\//, '');
  return plain.replace(/^([^/:]+?)\.?(?::\d+)?\//, '$1/') === HOST_ROOT_IMAGE;
}

/**
 * Whether the container has all of the host anyway: it is privileged and has the host's root directory mounted, as the
 * pods of `oc debug node/NAME`. The image shows it nothing more, so that any source may name it there.
 */
function hasHostRoot(pod: Pod, container: Pick<Container, 'securityContext' | 'volumeMounts'>): boolean {
  // With user namespaces, root of the container is not root of the host.
  const { hostUsers } = (pod.spec ?? {}) as { readonly hostUsers?: boolean };
  if (container.securityContext?.privileged !== true || hostUsers === false) return false;
  const roots = new Set(
    (pod.spec?.volumes ?? []).filter((each) => each.hostPath?.path === '/').map(({ name }) => name),
  );
  return (container.volumeMounts ?? []).some(
    ({ name, subPath = '', subPathExpr = '' }) => roots.has(name) && subPath === '' && subPathExpr === '',
  );
}

/** Whether a container of the API server's pods may name the image that it names. */
export const mayNameHostRoot = (
  pod: Pod,
  container: Pick<Container, 'image' | 'securityContext' | 'volumeMounts'>,
): boolean =>
  hasHostRoot(pod, container) ||
  (container.image === HOST_PROGRAMS_IMAGE && pod.metadata?.namespace?.startsWith(SYSTEM_NAMESPACES) === true);

/** Paths of the pod's fields that name the image without having the host anyway. */
export function hostRootFields(pod: Pod): string[] {
  const fields: string[] = [];
  const look = (path: string, image: unknown): void => {
    if (typeof image === 'string' && isHostRootImage(image)) fields.push(path);
  };
  for (const list of ['initContainers', 'containers', 'ephemeralContainers'] as const)
    for (const [index, container] of (pod.spec?.[list] ?? []).entries())
      if (!mayNameHostRoot(pod, container)) look(`spec.${list}[${index}].image`, container.image);
  // `image` volumes are younger than the package of types.
  const volumes = (pod.spec?.volumes ?? []) as readonly { readonly image?: { readonly reference?: unknown } }[];
  for (const [index, { image }] of volumes.entries()) look(`spec.volumes[${index}].image.reference`, image?.reference);
  return fields;
}

/** Why a pod or container may not name the image; `field` is a path or the name of a container. */
export const hostRootRefusal = (field: string): string =>
  `${field}: Forbidden: image ${HOST_ROOT_IMAGE} is reserved for static pods of the node's manifest directory; use another image`;
