/**
 * The reserved image `hyperedge.local/host-root`: the host's root file system, read-only. The static pods of the
 * control plane run from it. It is allowed for manifests in the node's own directory, and for containers that can
 * already access the whole host. API server, kubelet, runtime and image store apply the rules of this file.
 */
import type { Container, Pod } from '../generated/core/v1.ts';

export const HOST_ROOT_IMAGE = 'hyperedge.local/host-root';

/**
 * Variant of the image with only the host's programs, without configuration, state and home directories. `oc adm
 * must-gather` uses it. Only this exact spelling is accepted. Pods in `openshift-…` namespaces, which only
 * administrators can create, may use the variant.
 */
export const HOST_PROGRAMS_IMAGE = `${HOST_ROOT_IMAGE}:programs`;
const SYSTEM_NAMESPACES = 'openshift-';

/** SHA-256 of the image name, in the form of a digest. No stored image has this digest. */
const DIGEST = 'b2a643d7931c38a1f607e703aab40c181a43aacb80b4348a4a68819183a45b5a';
export const HOST_ROOT_ID = `sha256:${DIGEST}`;

/**
 * Sources of static pod manifests: the manifest directory, a URL, the node's key in the store, or the local submit API.
 */
export const MANIFEST_SOURCES = ['file', 'http', 'store', 'submitted'] as const;
export type ManifestSourceKind = (typeof MANIFEST_SOURCES)[number];

export type PodSource = ManifestSourceKind | 'api';

/** Whether pods from this source may use the image. Pods of the API server are never trusted as the node's own. */
export const mayUseHostRoot = (source: PodSource): boolean => source === 'file';

/**
 * Recognizes every spelling of the image: with tag, digest, ID with or without algorithm, other letter case, port, or
 * the default registry.
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
 * Whether the container has access to the whole host: it is privileged and mounts the host's root directory, as the
 * pods of `oc debug node/NAME` do. The image gives it no additional access, so it is allowed from any source.
 */
function hasHostRoot(pod: Pod, container: Pick<Container, 'securityContext' | 'volumeMounts'>): boolean {
  // In a user namespace, root in the container is not root on the host.
  const { hostUsers } = (pod.spec ?? {}) as { readonly hostUsers?: boolean };
  if (container.securityContext?.privileged !== true || hostUsers === false) return false;
  const roots = new Set(
    (pod.spec?.volumes ?? []).filter((each) => each.hostPath?.path === '/').map(({ name }) => name),
  );
  return (container.volumeMounts ?? []).some(
    ({ name, subPath = '', subPathExpr = '' }) => roots.has(name) && subPath === '' && subPathExpr === '',
  );
}

/** Whether a container of an API pod may use its image. */
export const mayNameHostRoot = (
  pod: Pod,
  container: Pick<Container, 'image' | 'securityContext' | 'volumeMounts'>,
): boolean =>
  hasHostRoot(pod, container) ||
  (container.image === HOST_PROGRAMS_IMAGE && pod.metadata?.namespace?.startsWith(SYSTEM_NAMESPACES) === true);

/** Field paths that name the image although the pod does not already have access to the host. */
export function hostRootFields(pod: Pod): string[] {
  const fields: string[] = [];
  const look = (path: string, image: unknown): void => {
    if (typeof image === 'string' && isHostRootImage(image)) fields.push(path);
  };
  for (const list of ['initContainers', 'containers', 'ephemeralContainers'] as const)
    for (const [index, container] of (pod.spec?.[list] ?? []).entries())
      if (!mayNameHostRoot(pod, container)) look(`spec.${list}[${index}].image`, container.image);
  for (const [index, { image }] of (pod.spec?.volumes ?? []).entries())
    look(`spec.volumes[${index}].image.reference`, image?.reference);
  return fields;
}

/** Error for a rejected pod or container. `field` is a field path or a container name. */
export const hostRootRefusal = (field: string): string =>
  `${field}: Forbidden: image ${HOST_ROOT_IMAGE} is reserved for static pods of the node's manifest directory; use another image`;
