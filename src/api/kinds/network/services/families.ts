/**
 * Assignment of IP families to services, in single-stack and dual-stack clusters. Source:
 * k8s.io/kubernetes/pkg/registry/core/service/storage/alloc.go initIPFamilyFields.
 */

import { ipFamilyOf } from '../../../../base/addresses/addresses.ts';
import type { Service, ServiceSpec } from '../../../generated/core/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';

type IpFamily = 'IPv4' | 'IPv6';
const POLICY = 'spec.ipFamilyPolicy';

/**
 * Fills ipFamilies and ipFamilyPolicy of a valid service that has cluster addresses. Returns errors for families that
 * the cluster does not have. `configured`: the cluster's families, primary first.
 */
export function assignFamilies(
  service: Service,
  old: Service | undefined,
  configured: readonly IpFamily[],
): FieldError[] {
  const spec: ServiceSpec = service.spec ?? {};
  const before = old?.spec;
  // An unchanged PreferDualStack service keeps the families that it was given.
  if (spec.ipFamilyPolicy === 'PreferDualStack' && before !== undefined && sameAddresses(spec, before)) return [];
  const anyone = spec.clusterIP === 'None' && Object.keys(spec.selector ?? {}).length === 0;
  spec.ipFamilyPolicy ??= before?.ipFamilyPolicy ?? (anyone ? 'RequireDualStack' : 'SingleStack');
  const errors = before === undefined ? [] : release(spec, before);
  if (spec.ipFamilyPolicy === 'SingleStack') {
    const why = (what: string): string =>
      `must be 'RequireDualStack' or 'PreferDualStack' when multiple ${what} are specified`;
    if (spec.clusterIPs?.length === 2) errors.push(fieldError.invalid(POLICY, 'SingleStack', why('cluster IPs')));
    if (spec.ipFamilies?.length === 2) errors.push(fieldError.invalid(POLICY, 'SingleStack', why('IP families')));
  }
  const isConfigured = (family: string): boolean => configured.some((each) => each === family);
  const families = [...(spec.ipFamilies ?? [])];
  if (spec.clusterIP !== 'None') {
    (spec.clusterIPs ?? []).slice(families.length).forEach((ip, index) => {
      const family = `IPv${ipFamilyOf(ip)}`;
      if (isConfigured(family)) families.push(family);
      else {
        const path = `spec.clusterIPs[${families.length + index}]`;
        errors.push(fieldError.invalid(path, spec.clusterIPs, `${family} is not configured on this cluster`));
      }
    });
  }
  if (errors.length > 0) return errors;
  if (families.length === 0 && configured[0] !== undefined) families.push(configured[0]);
  spec.ipFamilies = families;
  if (anyone) {
    // A headless service without a selector may have endpoints of both families, also in a single-stack cluster.
    if (families.length < 2 && spec.ipFamilyPolicy !== 'SingleStack')
      families.push(families[0] === 'IPv4' ? 'IPv6' : 'IPv4');
    return [];
  }
  if (spec.ipFamilyPolicy === 'RequireDualStack' && configured.length < 2) {
    const why = 'this cluster is not configured for dual-stack services';
    errors.push(fieldError.invalid(POLICY, spec.ipFamilyPolicy, why));
  }
  families.forEach((family, index) => {
    if (isConfigured(family)) return;
    errors.push(fieldError.invalid(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster'));
  });
  if (errors.length === 0 && spec.ipFamilyPolicy !== 'SingleStack' && families.length === 1)
    families.push(...configured.filter((family) => family !== families[0]));
  return errors;
}

const sameIps = (spec: ServiceSpec, before: ServiceSpec): boolean =>
  semanticEqual(spec.clusterIPs ?? [], before.clusterIPs ?? []);
const sameFamilies = (spec: ServiceSpec, before: ServiceSpec): boolean =>
  semanticEqual(spec.ipFamilies ?? [], before.ipFamilies ?? []);

function sameAddresses(spec: ServiceSpec, before: ServiceSpec): boolean {
  return before.ipFamilyPolicy === spec.ipFamilyPolicy && sameIps(spec, before) && sameFamilies(spec, before);
}

/**
 * Releases the secondary address. The client requests it with the policy SingleStack; the lists may still have two
 * entries.
 */
function release(spec: ServiceSpec, before: ServiceSpec): FieldError[] {
  if (spec.ipFamilyPolicy === 'SingleStack') {
    const [ips, families] = [sameIps(spec, before), sameFamilies(spec, before)];
    if (ips && (spec.clusterIPs?.length ?? 0) > 1) spec.clusterIPs = spec.clusterIPs?.slice(0, 1) ?? [];
    if (families && (spec.ipFamilies?.length ?? 0) > 1) spec.ipFamilies = spec.ipFamilies?.slice(0, 1) ?? [];
    return [];
  }
  const fewer = (now: readonly string[] | undefined, then: readonly string[] | undefined): boolean =>
    (now ?? []).length === 1 && (then ?? []).length === 2 && now?.[0] === then?.[0];
  const errors: FieldError[] = [];
  const report = (what: string): void => {
    errors.push(
      fieldError.invalid(POLICY, spec.ipFamilyPolicy, `must be 'SingleStack' to release the secondary ${what}`),
    );
  };
  if (fewer(spec.clusterIPs, before.clusterIPs)) report('cluster IP');
  if (fewer(spec.ipFamilies, before.ipFamilies)) report('IP family');
  return errors;
}
