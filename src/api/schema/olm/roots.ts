/** Name prefixes of types of the operator lifecycle manager. */
export const OLM_ROOT = 'com.github.operator-framework.api.pkg.operators';
export const PACKAGE_SERVER_ROOT = 'com.github.operator-framework.operator-lifecycle-manager.package-server';
export const CATALOG_PACKAGE_ROOT = 'dev.hyperedge.olm';
