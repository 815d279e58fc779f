/** Kubernetes release of the API. `kubectl version` shows it as the server's version. */
export const KUBERNETES_VERSION = { major: '1', minor: '36', gitVersion: 'v1.36.0+hyperedge1' } as const;

declare const HYPEREDGE_RELEASE: string;

/**
 * Version of this product. It is equal to the version in package.json, which a test checks. The bundler can override it
 * for tests of updates.
 */
export const PRODUCT_VERSION = typeof HYPEREDGE_RELEASE === 'string' ? HYPEREDGE_RELEASE : '0.1.0';

declare const HYPEREDGE_RELEASE_KEY: string;

/** Public key in PEM format of the release to which this executable belongs; empty in other builds. */
export const RELEASE_KEY = typeof HYPEREDGE_RELEASE_KEY === 'string' ? HYPEREDGE_RELEASE_KEY : '';

declare const HYPEREDGE_COMMIT: string;
declare const HYPEREDGE_COMMIT_DATE: string;
declare const HYPEREDGE_TREE_STATE: string;

/**
 * Source revision, which the bundler sets. It is unknown when Node runs the sources and in builds without Git history.
 */
export const BUILD = {
  commit: typeof HYPEREDGE_COMMIT === 'string' ? HYPEREDGE_COMMIT : '',
  /** Date of the commit. The date of the build is not used, so that builds are reproducible. */
  date: typeof HYPEREDGE_COMMIT_DATE === 'string' ? HYPEREDGE_COMMIT_DATE : '1970-01-01T00:00:00Z',
  treeState: typeof HYPEREDGE_TREE_STATE === 'string' ? HYPEREDGE_TREE_STATE : 'archive',
} as const;
