/** Limits of the APIs that an operator version may own. Fields: operator-framework/api, ClusterServiceVersionSpec. */
import type { ClusterServiceVersion } from '../kinds/types.ts';

/** Pattern `<plural>.<group>`. The API server rejects definitions with other names. */
const CRD_NAME =
  /^[a-z](?:[-a-z0-9]*[a-z0-9])?\.([a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)+)$/;
const GROUP_NAME = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)+$/;

/**
 * Reason why the operator version must not own one of its APIs; undefined if all are allowed. The groups of the server
 * are forbidden for two reasons: roles for owned APIs are aggregated into admin, edit and view, and a definition or
 * APIService could replace an API of the server itself.
 */
export function refusedApi({ spec }: ClusterServiceVersion, serverGroups: ReadonlySet<string>): string | undefined {
  for (const { name = '' } of spec?.customresourcedefinitions?.owned ?? []) {
    const refusal = refusedDefinition(name, serverGroups);
    if (refusal !== undefined) return `spec.customresourcedefinitions.owned: ${refusal}`;
  }
  for (const { group = '', version = '' } of spec?.apiservicedefinitions?.owned ?? []) {
    const name = `${version}.${group}`;
    if (!GROUP_NAME.test(group))
      return `spec.apiservicedefinitions.owned: ${JSON.stringify(name)} has no valid API group; use a DNS name of two or more labels`;
    if (serverGroups.has(group))
      return `spec.apiservicedefinitions.owned: ${JSON.stringify(name)} is in a group that the API server itself serves; use a group of the operator`;
  }
  return undefined;
}

/** Reason why an operator must not define the custom resource `name`; undefined if it may. */
export function refusedDefinition(name: string, serverGroups: ReadonlySet<string>): string | undefined {
  const group = CRD_NAME.exec(name)?.[1];
  if (group === undefined) return `${JSON.stringify(name)} is not a name of a definition; use <plural>.<group>`;
  if (!serverGroups.has(group)) return undefined;
  return `${JSON.stringify(name)} is in a group that the API server itself serves; use a group of the operator`;
}
