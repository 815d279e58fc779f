/**
 * Security context constraints, which `apiserver/admission` enforces. Source: openshift/api security/v1,
 * columns of `oc get scc`.
 */
import { column, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS } from '../../../../api/registry/strategies.ts';
import type { SecurityContextConstraints } from './types.ts';
import { validateConstraints } from './validation.ts';
import { ALL_VOLUMES, HOST_PATH, NO_VOLUMES, VOLUME_TYPES } from './volumes.ts';

/** Text that `oc get scc` shows for a value that is not set. */
const NO_VALUE = '<no value>';

/**
 * Sets defaults. allowHostDirVolumePlugin decides whether `hostPath` is allowed: if it is false, the volume type `*` is
 * replaced by all other types. Source: openshift/apiserver-library-go, SetDefaults_SCC.
 */
function setDefaults(scc: SecurityContextConstraints): void {
  for (const field of ['fsGroup', 'supplementalGroups'] as const) {
    const strategy = scc[field] ?? {};
    strategy.type ||= 'RunAsAny';
    scc[field] = strategy;
  }
  scc.users ??= [];
  scc.groups ??= [];
  scc.allowPrivilegeEscalation ??= true;
  const volumes = new Set(scc.volumes ?? [ALL_VOLUMES]);
  if (scc.volumes?.length === 0) volumes.add(NO_VOLUMES);
  if (scc.allowHostDirVolumePlugin === true) {
    if (!volumes.has(ALL_VOLUMES)) volumes.add(HOST_PATH);
    if (volumes.size > 1) volumes.delete(NO_VOLUMES);
  } else {
    const all = volumes.delete(ALL_VOLUMES);
    volumes.delete(HOST_PATH);
    if (all) for (const type of VOLUME_TYPES) volumes.add(type);
    if (volumes.size === 0) volumes.add(NO_VOLUMES);
  }
  scc.volumes = [...volumes].sort();
}

const listText = (values: readonly string[] | undefined): string =>
  values === undefined || values.length === 0 ? NO_VALUE : JSON.stringify(values);

const strategyText = (strategy: { readonly type?: string } | undefined): string => strategy?.type ?? NO_VALUE;

const shown = column<SecurityContextConstraints>;

export const securityContextConstraints: KindDefinition<SecurityContextConstraints> = {
  group: 'security.openshift.io',
  version: 'v1',
  kind: 'SecurityContextConstraints',
  plural: 'securitycontextconstraints',
  singular: 'securitycontextconstraints',
  listKind: 'SecurityContextConstraintsList',
  namespaced: false,
  shortNames: ['scc'],
  verbs: ALL_VERBS,
  schemaName: 'com.github.openshift.api.security.v1.SecurityContextConstraints',
  storagePrefix: 'openshift.io/securitycontextconstraints',
  setDefaults,
  strategy: { validate: validateConstraints },
  columns: [
    nameColumn,
    shown('Priv', 'Whether containers may be privileged.', (scc) => String(scc.allowPrivilegedContainer ?? false)),
    shown('Caps', 'Capabilities that may be added.', (scc) => listText(scc.allowedCapabilities)),
    shown('SELinux', 'How SELinux labels are chosen.', (scc) => strategyText(scc.seLinuxContext)),
    shown('RunAsUser', 'How users are chosen.', (scc) => strategyText(scc.runAsUser)),
    shown('FSGroup', 'How groups of volumes are chosen.', (scc) => strategyText(scc.fsGroup)),
    shown('SupGroup', 'How supplemental groups are chosen.', (scc) => strategyText(scc.supplementalGroups)),
    shown('Priority', 'Order in which constraints are tried.', (scc) => String(scc.priority ?? NO_VALUE)),
    shown('ReadOnlyRootFS', 'Whether root file systems must be read-only.', (scc) =>
      String(scc.readOnlyRootFilesystem ?? false),
    ),
    shown('Volumes', 'Volume types that may be used.', (scc) => listText(scc.volumes)),
  ],
};
