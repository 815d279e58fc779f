/**
 * Order in which SCCs are tried: by priority, then by restrictiveness, then by name. Source:
 * openshift/apiserver-library-go pkg/securitycontextconstraints/util/sort.
 */
import type { SecurityContextConstraints } from '../kinds/securitycontextconstraints/types.ts';
import { ALL_VOLUMES, HOST_PATH, NO_VOLUMES } from '../kinds/securitycontextconstraints/volumes.ts';

/** Points of each permission. Each permission has more points than all permissions below it together. */
const POINTS = {
  privileged: 1_600_000,
  hostPorts: 800_000,
  hostNetwork: 400_000,
  hostVolume: 200_000,
  otherVolume: 100_000,
} as const;
const STRATEGY_POINTS: ReadonlyMap<string, number> = new Map([
  ['RunAsAny', 40_000],
  ['MustRunAsNonRoot', 30_000],
  ['MustRunAsRange', 20_000],
  ['MustRunAs', 10_000],
]);
const CAPABILITIES = { base: 5_000, add: 300, allow: 10, allowAll: 4_000, drop: -50, dropAll: -3_000, max: 9_999 };
const TRIVIAL_VOLUMES = new Set(['secret', 'configMap', 'emptyDir', 'downwardAPI', 'projected', NO_VOLUMES]);

/** Points of an SCC. Fewer points mean fewer permissions. */
export function restrictivenessPoints(scc: SecurityContextConstraints): number {
  const strategy = (type: string | undefined): number => STRATEGY_POINTS.get(type ?? '') ?? 0;
  return (
    (scc.allowPrivilegedContainer === true ? POINTS.privileged : 0) +
    (scc.allowHostPorts === true ? POINTS.hostPorts : 0) +
    (scc.allowHostNetwork === true ? POINTS.hostNetwork : 0) +
    volumePoints(scc.volumes ?? []) +
    capabilityPoints(scc) +
    strategy(scc.seLinuxContext?.type) +
    strategy(scc.runAsUser?.type)
  );
}

export function inOrder(constraints: readonly SecurityContextConstraints[]): SecurityContextConstraints[] {
  const keyed = constraints.map((scc) => ({
    scc,
    priority: scc.priority ?? 0,
    points: restrictivenessPoints(scc),
    name: scc.metadata?.name ?? '',
  }));
  keyed.sort((a, b) => b.priority - a.priority || a.points - b.points || (a.name < b.name ? -1 : 1));
  return keyed.map(({ scc }) => scc);
}

function volumePoints(volumes: readonly string[]): number {
  if (volumes.includes(ALL_VOLUMES) || volumes.includes(HOST_PATH)) return POINTS.hostVolume;
  return volumes.every((type) => TRIVIAL_VOLUMES.has(type)) ? 0 : POINTS.otherVolume;
}

function capabilityPoints(scc: SecurityContextConstraints): number {
  const {
    defaultAddCapabilities: add = [],
    allowedCapabilities: allowed = [],
    requiredDropCapabilities: drop = [],
  } = scc;
  const isAll = (name: string): boolean => name.toUpperCase() === 'ALL';
  const allows = allowed.some((name) => name === '*' || isAll(name))
    ? CAPABILITIES.allowAll
    : allowed.length * CAPABILITIES.allow;
  const drops = drop.some(isAll) ? CAPABILITIES.dropAll : drop.length * CAPABILITIES.drop;
  const points = CAPABILITIES.base + add.length * CAPABILITIES.add + allows + drops;
  return Math.min(Math.max(points, 0), CAPABILITIES.max);
}
