/**
 * Default priorities of groups and versions in discovery. Source:
 * k8s.io/kubernetes/pkg/controlplane/apiserver/aggregator.go.
 */

export interface Priority {
  /** Priority of the group, 1 to 20000. Groups with higher values come first. */
  readonly group: number;
  /** Priority of the version in its group, 1 to 1000. Versions with equal values are ordered by name. */
  readonly version: number;
}

export const REGISTRATION_GROUP = 'apiregistration.k8s.io';

const GROUPS: Readonly<Record<string, number>> = {
  // One more than the maximum for APIService objects.
  [REGISTRATION_GROUP]: 20_001,
  '': 18_000,
  apps: 17_800,
  'events.k8s.io': 17_750,
  'authentication.k8s.io': 17_700,
  'authorization.k8s.io': 17_600,
  autoscaling: 17_500,
  batch: 17_400,
  'certificates.k8s.io': 17_300,
  'networking.k8s.io': 17_200,
  extensions: 17_150,
  policy: 17_100,
  'rbac.authorization.k8s.io': 17_000,
  'storage.k8s.io': 16_800,
  'apiextensions.k8s.io': 16_700,
  'admissionregistration.k8s.io': 16_700,
  'scheduling.k8s.io': 16_600,
  'coordination.k8s.io': 16_500,
  'node.k8s.io': 16_300,
  'discovery.k8s.io': 16_200,
  'flowcontrol.apiserver.k8s.io': 16_100,
};
const OTHER_GROUP = 15_000;
/**
 * Priorities of OpenShift's groups. config.openshift.io comes last, so that `projects` means the projects of
 * project.openshift.io.
 */
const OPENSHIFT_GROUP = 9_900;
const OPENSHIFT_CONFIG = { name: 'config.openshift.io', priority: 9_800 };

/** Versions whose priority differs from the default of their stability level. */
const VERSIONS: Readonly<Record<string, number>> = {
  '/v1': 1,
  'extensions/v1beta1': 1,
  'autoscaling/v2': 30,
  'autoscaling/v2beta2': 1,
  'events.k8s.io/v1beta1': 5,
  'admissionregistration.k8s.io/v1beta1': 12,
  'discovery.k8s.io/v1beta1': 12,
  'flowcontrol.apiserver.k8s.io/v1': 21,
  'flowcontrol.apiserver.k8s.io/v1beta3': 18,
  'flowcontrol.apiserver.k8s.io/v1beta2': 15,
  'flowcontrol.apiserver.k8s.io/v1beta1': 12,
};

/** Priority of groups and versions of CustomResourceDefinitions. */
export const CUSTOM_PRIORITY: Priority = { group: 1_000, version: 100 };

export function builtinPriority(group: string, version: string): Priority {
  const stage = version.includes('alpha') ? 1 : version.includes('beta') ? 9 : 15;
  return { group: GROUPS[group] ?? otherPriority(group), version: VERSIONS[`${group}/${version}`] ?? stage };
}

function otherPriority(group: string): number {
  if (group === OPENSHIFT_CONFIG.name) return OPENSHIFT_CONFIG.priority;
  return group.endsWith('.openshift.io') ? OPENSHIFT_GROUP : OTHER_GROUP;
}
