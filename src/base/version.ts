/** The Kubernetes release whose API this serves; what `kubectl version` shows as the server's. */
export const KUBERNETES_VERSION = { major: '1', minor: '36', gitVersion: 'v1.36.0+hyperedge1' } as const;

declare const HYPEREDGE_RELEASE: string;

/**
 * This product's own version; kept equal to package.json's by a test. The bundler may put in another one, for tests of
 * updates.
 */
export const PRODUCT_VERSION = typeof HYPEREDGE_RELEASE === 'string' ? HYPEREDGE_RELEASE : '0.1.0';

declare const HYPEREDGE_COMMIT: string;
declare const HYPEREDGE_COMMIT_DATE: string;
declare const HYPEREDGE_TREE_STATE: string;

/**
 * What this was built from, as the bundler puts it in; run from its sources, or built without their history, it is
 * unknown.
 */
export const BUILD = {
  commit: typeof HYPEREDGE_COMMIT === 'string' ? HYPEREDGE_COMMIT : '',
  /** Of the commit, not of the build: the same sources give the same executable. */
  date: typeof HYPEREDGE_COMMIT_DATE === 'string' ? HYPEREDGE_COMMIT_DATE : '1970-01-01T00:00:00Z',
  treeState: typeof HYPEREDGE_TREE_STATE === 'string' ? HYPEREDGE_TREE_STATE : 'archive',
} as const;
