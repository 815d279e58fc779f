/**
 * Finds files of one volume that overwrite each other. Source: k8s.io/kubernetes/pkg/api/pod/warnings.go
 * warningsForOverlappingVirtualPaths.
 */
import type { Volume, VolumeProjection } from '../../generated/core/v1.ts';

interface Placed {
  readonly path?: string;
}

export function* overlapWarnings(volumes: readonly Volume[]): Generator<string> {
  const quoted = JSON.stringify;
  for (const { name, configMap, secret, downwardAPI, projected } of volumes) {
    const volume = (what: string): string => `volume ${quoted(name)} (${what}): overlapping paths`;
    yield* overlaps(pathsOf(configMap?.items), [], volume(`ConfigMap ${quoted(configMap?.name ?? '')}`));
    yield* overlaps(pathsOf(secret?.items), [], volume(`Secret ${quoted(secret?.secretName ?? '')}`));
    yield* overlaps(pathsOf(downwardAPI?.items), [], volume('DownwardAPI'));
    const before: string[] = [];
    for (const source of projected?.sources ?? []) {
      const found = projectedPaths(source);
      if (found === undefined) {
        yield `volume ${quoted(name)} (Projected) has no sources provided`;
        continue;
      }
      yield* overlaps(found.paths, before, volume(`Projected ${found.what}`));
      before.push(...found.paths);
    }
  }
}

const pathsOf = (items: readonly Placed[] | undefined): string[] => (items ?? []).map((item) => item.path ?? '');

function projectedPaths(source: VolumeProjection): { readonly paths: string[]; readonly what: string } | undefined {
  const { configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle } = source;
  const quoted = JSON.stringify;
  if (configMap !== undefined) {
    return { paths: pathsOf(configMap.items), what: `ConfigMap ${quoted(configMap.name ?? '')}` };
  }
  if (secret !== undefined) return { paths: pathsOf(secret.items), what: `Secret ${quoted(secret.name ?? '')}` };
  if (downwardAPI !== undefined) return { paths: pathsOf(downwardAPI.items), what: 'DownwardAPI' };
  if (serviceAccountToken !== undefined) {
    return { paths: [serviceAccountToken.path ?? ''], what: 'ServiceAccountToken' };
  }
  if (clusterTrustBundle !== undefined) {
    const named = clusterTrustBundle.name ?? clusterTrustBundle.signerName ?? '';
    return { paths: [clusterTrustBundle.path], what: `ClusterTrustBundle ${quoted(named)}` };
  }
  return Object.values(source).some((each) => each !== undefined) ? { paths: [], what: '' } : undefined;
}

/**
 * Yields paths that are equal to, inside, or a parent of an earlier path. A lookup by path segments keeps the cost
 * linear in the total length.
 */
function* overlaps(paths: readonly string[], before: readonly string[], source: string): Generator<string> {
  if (paths.length === 0) return;
  const whole = new Set<string>();
  /** Parent folders of all earlier paths, each with the first path that is inside the folder. */
  const folders = new Map<string, string>();
  const add = (path: string): void => {
    whole.add(path);
    for (const folder of foldersOf(path)) if (!folders.has(folder)) folders.set(folder, path);
  };
  for (const path of before) add(path.replace(/\/+$/, ''));
  for (const given of paths) {
    const path = given.replace(/\/+$/, '');
    if (path === '') continue;
    const other = whole.has(path) ? path : (foldersOf(path).find((folder) => whole.has(folder)) ?? folders.get(path));
    if (other !== undefined) yield `${source}: ${JSON.stringify(path)} with ${JSON.stringify(other)}`;
    add(path);
  }
}

/** Upper bound for compared path segments; deeper parts are ignored. */
const MAX_DEPTH = 64;

function foldersOf(path: string): string[] {
  const parts = path.split('/', MAX_DEPTH);
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}
