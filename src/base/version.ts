/** The Kubernetes release whose API this serves; what `kubectl version` shows as the server's. */
export const KUBERNETES_VERSION = { major: '1', minor: '36', gitVersion: 'v1.36.0+hyperedge1' } as const;

/** This product's own version; kept equal to package.json's by a test. */
export const PRODUCT_VERSION = '0.1.0';
