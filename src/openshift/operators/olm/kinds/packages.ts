/**
 * Package manifests, and the catalog packages from which the API server computes them. Source:
 * operator-lifecycle-manager pkg/package-server.
 */
import { ageColumn, column, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS } from '../../../../api/registry/strategies.ts';
import type { CatalogPackage, PackageManifest } from './types.ts';

/** Catalogs in this namespace are available in all namespaces. */
export const GLOBAL_CATALOG_NAMESPACE = 'openshift-marketplace';

/** Packages that can be installed in a namespace, including packages of global catalogs. */
export const packageManifests: KindDefinition<PackageManifest> = {
  group: 'packages.operators.coreos.com',
  version: 'v1',
  kind: 'PackageManifest',
  plural: 'packagemanifests',
  singular: 'packagemanifest',
  listKind: 'PackageManifestList',
  namespaced: true,
  verbs: ['get', 'list'],
  schemaName: 'com.github.operator-framework.operator-lifecycle-manager.package-server.v1.PackageManifest',
  storagePrefix: '',
  isComputed: true,
  strategy: {},
  columns: [
    nameColumn,
    column<PackageManifest>('Catalog', 'Name of the catalog.', ({ status }) => status?.catalogSourceDisplayName ?? ''),
    ageColumn,
  ],
};

/** Packages of catalogs, written by controllers. Only controllers and cluster administrators have access. */
export const catalogPackages: KindDefinition<CatalogPackage> = {
  group: 'olm.hyperedge.dev',
  version: 'v1',
  kind: 'CatalogPackage',
  plural: 'catalogpackages',
  singular: 'catalogpackage',
  listKind: 'CatalogPackageList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: 'dev.hyperedge.olm.v1.CatalogPackage',
  returnsDeleted: 'undocumented',
  storagePrefix: 'hyperedge.dev/catalogpackages',
  strategy: {},
  columns: [
    nameColumn,
    column<CatalogPackage>('Package', 'Name of the package.', ({ manifest }) => manifest?.packageName ?? ''),
    column<CatalogPackage>('Catalog', 'Name of the catalog source.', ({ manifest }) => manifest?.catalogSource ?? ''),
    ageColumn,
  ],
};
