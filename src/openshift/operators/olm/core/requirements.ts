/**
 * Requirements of an operator version on the cluster. Source: operator-lifecycle-manager,
 * operators/olm/requirements.go.
 */

import type { PolicyRule } from '../../../../api/generated/rbac/v1.ts';
import { compareSemver } from '../../../../base/versions/semver.ts';
import type { ClusterServiceVersion, RequirementStatus } from '../kinds/types.ts';
import { parseVersion } from './catalog/semver.ts';
import { serviceAccountNames } from './rbac.ts';

export interface ClusterFacts {
  readonly kubeVersion: string;
  /** Custom resource definition with this name; undefined if it does not exist. */
  crd(
    name: string,
  ): { readonly uid: string; readonly established: boolean; readonly served: readonly string[] } | undefined;
  /** UID of the service account in the operator's namespace; undefined if it does not exist. */
  serviceAccount(name: string): string | undefined;
  /**
   * Whether the service account has the permission: in the whole cluster if `clusterWide`, otherwise in its namespace.
   */
  allows(serviceAccount: string, rule: PolicyRule, clusterWide: boolean): boolean;
  serves(group: string, version: string, kind: string): boolean;
}

export interface Requirements {
  readonly statuses: RequirementStatus[];
  readonly met: boolean;
}

export function requirementsOf(csv: ClusterServiceVersion, facts: ClusterFacts): Requirements {
  const statuses = [
    ...minimumVersion(csv, facts),
    ...definitions(csv, facts),
    ...natives(csv, facts),
    ...accounts(csv, facts),
  ];
  return { statuses, met: statuses.every(({ status }) => status === 'Present') };
}

function minimumVersion({ spec, metadata }: ClusterServiceVersion, facts: ClusterFacts): RequirementStatus[] {
  const wanted = parseVersion(spec?.minKubeVersion ?? '');
  if (wanted === undefined) return [];
  const found = parseVersion(facts.kubeVersion);
  const met = found !== undefined && compareSemver({ ...found, pre: [] }, wanted) >= 0;
  return [
    {
      group: 'operators.coreos.com',
      version: 'v1alpha1',
      kind: 'ClusterServiceVersion',
      name: metadata?.name ?? '',
      status: met ? 'Present' : 'PresentNotSatisfied',
      message: met
        ? `CSV minKubeVersion (${spec?.minKubeVersion}) less than server version (${facts.kubeVersion})`
        : `CSV version requirement not met: minKubeVersion (${spec?.minKubeVersion}) > server version (${facts.kubeVersion})`,
    },
  ];
}

function definitions({ spec }: ClusterServiceVersion, facts: ClusterFacts): RequirementStatus[] {
  const { owned = [], required = [] } = spec?.customresourcedefinitions ?? {};
  return [...owned, ...required].map(({ name = '', version = '' }) => {
    const found = facts.crd(name);
    const base = { group: 'apiextensions.k8s.io', version: 'v1', kind: 'CustomResourceDefinition', name };
    if (found === undefined) return { ...base, status: 'NotPresent', message: 'CRD is not present' };
    const { uid: uuid } = found;
    if (!found.served.includes(version))
      return { ...base, uuid, status: 'NotPresent', message: 'CRD version not served' };
    if (!found.established)
      return {
        ...base,
        uuid,
        status: 'NotAvailable',
        message: 'CRD is present but the Established condition is False',
      };
    return { ...base, uuid, status: 'Present', message: 'CRD is present and Established condition is true' };
  });
}

function natives({ spec }: ClusterServiceVersion, facts: ClusterFacts): RequirementStatus[] {
  const apis = (spec?.apiservicedefinitions?.required ?? []).map((each) => ({ ...each, what: 'APIService' }));
  const kinds = (spec?.nativeAPIs ?? []).map((each) => ({ ...each, what: 'Native API' }));
  return [...apis, ...kinds].map(({ group = '', version = '', kind = '', what }) => {
    const served = facts.serves(group, version, kind);
    return {
      group,
      version,
      kind,
      name: `${version}.${group}`,
      status: served ? 'Present' : 'NotPresent',
      message: served ? `${what} exists` : `${what} does not exist`,
    };
  });
}

function accounts(csv: ClusterServiceVersion, facts: ClusterFacts): RequirementStatus[] {
  const { permissions = [], clusterPermissions = [] } = csv.spec?.install?.spec ?? {};
  return serviceAccountNames(csv).map((name) => {
    const base = { group: '', version: 'v1', kind: 'ServiceAccount', name };
    const uuid = facts.serviceAccount(name);
    if (uuid === undefined) return { ...base, status: 'NotPresent', message: 'Service account does not exist' };
    const rules = [
      ...permissions.filter((each) => each.serviceAccountName === name).map((each) => ({ each, wide: false })),
      ...clusterPermissions.filter((each) => each.serviceAccountName === name).map((each) => ({ each, wide: true })),
    ].flatMap(({ each, wide }) => (each.rules ?? []).map((rule) => ({ rule, wide })));
    const dependents = rules.map(({ rule, wide }) => ({
      group: 'rbac.authorization.k8s.io',
      version: 'v1',
      kind: 'PolicyRule',
      status: facts.allows(name, rule, wide) ? 'Satisfied' : 'NotSatisfied',
      message: `${wide ? 'cluster' : 'namespaced'} rule:${JSON.stringify(rule)}`,
    }));
    const met = dependents.every(({ status }) => status === 'Satisfied');
    return {
      ...base,
      uuid,
      status: met ? 'Present' : 'PresentNotSatisfied',
      message: met ? '' : 'Policy rule not satisfied for service account',
      ...(dependents.length === 0 ? {} : { dependents }),
    };
  });
}
