/** Warnings for services. Source: k8s.io/kubernetes/pkg/api/service/warnings.go. */
import type { Service, ServiceSpec } from '../../../generated/core/v1.ts';
import { isSet } from '../../../meta/validation.ts';
import { addressWarnings, networkWarnings } from '../../../validation/address-warnings.ts';

const HINTS = 'service.kubernetes.io/topology-aware-hints';
/** Upper bound for warnings in one response, because they are sent as headers. */
const MAX_WARNINGS = 32;

export function serviceWarnings(service: Service): string[] {
  return warningsOf(service).take(MAX_WARNINGS).toArray();
}

function* warningsOf(service: Service): Generator<string> {
  const spec: ServiceSpec = service.spec ?? {};
  if (service.metadata?.annotations?.[HINTS] !== undefined) {
    yield `annotation ${HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead`;
  }
  const { externalIPs = [], loadBalancerIP, loadBalancerSourceRanges = [], type } = spec;
  const headless = type === 'ClusterIP' && spec.clusterIP === 'None';
  for (const [index, ip] of (spec.clusterIPs ?? []).entries()) yield* addressWarnings(ip, `spec.clusterIPs[${index}]`);
  if (headless) {
    if (isSet(loadBalancerIP)) yield 'spec.loadBalancerIP is ignored for headless services';
    if (externalIPs.length > 0) yield 'spec.externalIPs is ignored for headless services';
    if (spec.sessionAffinity !== 'None') yield 'spec.SessionAffinity is ignored for headless services';
  }
  for (const [index, ip] of externalIPs.entries()) yield* addressWarnings(ip, `spec.externalIPs[${index}]`);
  if (externalIPs.length > 0 && !headless && type !== 'ExternalName') {
    yield 'spec.externalIPs is deprecated and may no longer be implemented in some clusters';
  }
  if (isSet(loadBalancerIP)) yield* addressWarnings(loadBalancerIP, 'spec.loadBalancerIP');
  for (const [index, range] of loadBalancerSourceRanges.entries()) {
    yield* networkWarnings(range, `spec.loadBalancerSourceRanges[${index}]`);
  }
  if (type === 'ExternalName' && externalIPs.length > 0) {
    yield 'spec.externalIPs is ignored when spec.type is "ExternalName"';
  }
  if (type !== 'ExternalName' && isSet(spec.externalName)) {
    yield 'spec.externalName is ignored when spec.type is not "ExternalName"';
  }
  if (spec.trafficDistribution === 'PreferClose') {
    yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"';
  }
}
