/**
 * Steps of an install plan: the objects of a bundle and the RBAC objects of its operator version, in the order of
 * creation. Source: operator-lifecycle-manager pkg/controller/registry/resolver/steps.go; operator-registry
 * pkg/lib/bundle (supported kinds).
 */

import type { KubeObject } from '../../../../api/meta/object.ts';
import type { ClusterServiceVersion, InstallPlanStep } from '../kinds/types.ts';
import { rbacOf } from './rbac.ts';
import type { Choice } from './selection.ts';

export const CSV_KIND = 'ClusterServiceVersion';
export const CRD_KIND = 'CustomResourceDefinition';

/** Kinds that a bundle may contain besides its CSV. */
const SUPPORTED: ReadonlySet<string> = new Set([
  'ClusterRole',
  'ClusterRoleBinding',
  'ConfigMap',
  'ConsoleCLIDownload',
  'ConsoleLink',
  'ConsoleQuickStart',
  'ConsoleYAMLSample',
  CRD_KIND,
  'NetworkPolicy',
  'PodDisruptionBudget',
  'PriorityClass',
  'PrometheusRule',
  'Role',
  'RoleBinding',
  'Secret',
  'Service',
  'ServiceAccount',
  'ServiceMonitor',
]);
/** Kinds that a cluster may lack. If a cluster lacks the kind, the plan skips the step. */
const OPTIONAL: ReadonlySet<string> = new Set([
  'ConsoleCLIDownload',
  'ConsoleLink',
  'ConsoleQuickStart',
  'ConsoleYAMLSample',
  'PrometheusRule',
  'ServiceMonitor',
]);
/** Order of creation. The CSV comes first, because it owns the other objects. */
const ORDER = [CSV_KIND, CRD_KIND, 'PriorityClass', 'ServiceAccount', 'Secret', 'ConfigMap', 'Role', 'ClusterRole'];
const MAX_OBJECTS = 500;

export interface BundleContent {
  readonly csv: ClusterServiceVersion;
  readonly others: readonly KubeObject[];
}

/** Sorts the objects of a bundle into its CSV and the others. Returns an error message if the bundle is invalid. */
export function bundleContent(name: string, objects: readonly unknown[]): BundleContent | string {
  if (objects.length > MAX_OBJECTS) return `bundle ${name}: has more than ${MAX_OBJECTS} objects`;
  const versions: ClusterServiceVersion[] = [];
  const others: KubeObject[] = [];
  for (const each of objects) {
    if (typeof each !== 'object' || each === null || Array.isArray(each))
      return `bundle ${name}: an object is not a JSON object`;
    const object = each as KubeObject;
    const { kind, apiVersion, metadata } = object;
    if (typeof kind !== 'string' || typeof apiVersion !== 'string' || typeof metadata?.name !== 'string')
      return `bundle ${name}: an object has no kind, apiVersion or name`;
    if (kind === CSV_KIND) versions.push(object);
    else if (SUPPORTED.has(kind)) others.push(object);
    else return `bundle ${name}: ${kind} ${metadata.name} has a kind that bundles must not contain`;
  }
  const [csv] = versions;
  if (csv === undefined || versions.length > 1)
    return `bundle ${name}: contains ${versions.length} ClusterServiceVersions; it must contain one`;
  if (csv.metadata?.name !== name)
    return `bundle ${name}: its ClusterServiceVersion is named ${csv.metadata?.name}; give both one name`;
  return { csv, others };
}

/**
 * Creates the steps that install a bundle.
 *
 * @param choice Operator version to install in `namespace`.
 * @param properties Properties of the bundle.
 */
export function stepsOf(
  { csv, others }: BundleContent,
  choice: Choice,
  namespace: string,
  properties: readonly unknown[],
): InstallPlanStep[] {
  const { replaces: _replaces, ...spec } = csv.spec ?? {};
  const version: ClusterServiceVersion = {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: CSV_KIND,
    metadata: {
      name: choice.name,
      namespace,
      ...(csv.metadata?.labels === undefined ? {} : { labels: csv.metadata.labels }),
      annotations: {
        ...csv.metadata?.annotations,
        'operatorframework.io/properties': JSON.stringify({ properties }),
      },
    },
    spec: {
      ...spec,
      // The channel, not the CSV, determines which version is replaced.
      ...(choice.replaces === '' ? {} : { replaces: choice.replaces }),
      ...(choice.skips.length === 0 ? {} : { skips: [...choice.skips] }),
    },
  };
  const rbac = rbacOf(version, namespace) as readonly KubeObject[];
  const own = others.map((object) => inNamespace(object, namespace));
  const [sourceNamespace = '', sourceName = ''] = choice.catalog.split('/');
  return [version as KubeObject, ...own, ...rbac]
    .map((object, index) => ({ object, index }))
    .sort((a, b) => rankOf(a.object) - rankOf(b.object) || a.index - b.index)
    .map(({ object }) => stepOf(object, choice.name, sourceName, sourceNamespace));
}

const CLUSTER_SCOPED: ReadonlySet<string> = new Set([
  'ClusterRole',
  'ClusterRoleBinding',
  'ConsoleCLIDownload',
  'ConsoleLink',
  'ConsoleQuickStart',
  'ConsoleYAMLSample',
  CRD_KIND,
  'PriorityClass',
]);

/**
 * Sets the namespace of an object to the operator's namespace, because objects of a bundle must not be created
 * elsewhere.
 */
function inNamespace(object: KubeObject, namespace: string): KubeObject {
  const { namespace: _own, ...metadata } = object.metadata ?? {};
  return {
    ...object,
    metadata: CLUSTER_SCOPED.has(object.kind ?? '') ? metadata : { ...metadata, namespace },
  };
}

function rankOf({ kind = '' }: KubeObject): number {
  const rank = ORDER.indexOf(kind);
  return rank < 0 ? ORDER.length : rank;
}

function stepOf(object: KubeObject, resolving: string, sourceName: string, sourceNamespace: string): InstallPlanStep {
  const { apiVersion = '', kind = '', metadata } = object;
  const slash = apiVersion.indexOf('/');
  return {
    resolving,
    resource: {
      sourceName,
      sourceNamespace,
      group: slash < 0 ? '' : apiVersion.slice(0, slash),
      version: apiVersion.slice(slash + 1),
      kind,
      name: metadata?.name ?? '',
      manifest: JSON.stringify(object),
    },
    ...(OPTIONAL.has(kind) ? { optional: true } : {}),
    status: 'Unknown',
  };
}
