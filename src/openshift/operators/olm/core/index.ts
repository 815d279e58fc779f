/** Operators: catalogs, resolution, install plans and phases of operator versions. This code performs no I/O. */
export { fieldsOf, listOf, readBlob, textOf } from './catalog/blobs.ts';
export { type Bundle, type Catalog, CatalogBuilder, type CatalogPackage } from './catalog/catalog.ts';
export { channelNamed, successors } from './catalog/graph.ts';
export { LEGACY_KEYS, legacyDocuments } from './catalog/legacy.ts';
export { parseVersion } from './catalog/semver.ts';
export { editedVersion, firstVersion, missingPart } from './catalog/upgrade-path.ts';
export { copiesOf } from './copies.ts';
export { type BundleContent, bundleContent, CRD_KIND, CSV_KIND, stepsOf } from './install-steps.ts';
export { manifestLabels, manifestOf } from './manifests.ts';
export {
  CLEANUP_FINALIZER,
  COPIED_LABEL,
  componentLabel,
  digestOf,
  LIFECYCLE_MANAGER,
  MANAGED_LABEL,
  OPERATOR_GROUP,
  OPERATOR_NAMESPACE,
  OWNER_LABEL,
  OWNER_NAMESPACE_LABEL,
  ownerLabels,
  PROVIDED_APIS,
  SPEC_HASH_LABEL,
  TARGET_NAMESPACES,
} from './names.ts';
export { groupOf, isProblem, providedApis, targetNamespaces, unsupportedMode } from './operator-groups.ts';
export { refusedApi, refusedDefinition } from './owned-apis.ts';
export { type Health, type NextPhase, nextPhase, statusAfter } from './phases.ts';
export { providedApiRoles, requestsAllPermissions, serviceAccountNames, targetRbacOf } from './rbac.ts';
export { type ClusterFacts, requirementsOf } from './requirements.ts';
export { type Resolution, resolve } from './resolver.ts';
export {
  type Choice,
  currentOf,
  isChoice,
  isComponentOf,
  type PropertyRules,
  packageOf,
  problemOf,
  type ResolverInput,
  type VisibleCatalog,
} from './selection.ts';
export { type DocumentSplitter, jsonSplitter, yamlSplitter } from './splitter.ts';
export {
  apiServicesOf,
  conversionsOf,
  deploymentsOf,
  dnsNamesOf,
  ownerReference,
  secretName,
  servicesOf,
  servingDeployments,
  unknownDeployment,
  webhookConfigurations,
} from './strategy.ts';
