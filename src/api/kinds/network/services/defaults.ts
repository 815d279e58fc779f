/**
 * Defaults of services, and adjustments after a change of type. Source: k8s.io/kubernetes/pkg/apis/core/v1
 * SetDefaults_Service; pkg/registry/core/service.
 */
import type { Service, ServicePort, ServiceSpec } from '../../../generated/core/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { isSet } from '../../../meta/validation.ts';

/** Default timeout of session affinity: three hours. */
const AFFINITY_SECONDS = 10800;

export function setServiceDefaults(service: Service): void {
  service.spec ??= {};
  const spec = service.spec;
  if (!isSet(spec.sessionAffinity)) spec.sessionAffinity = 'None';
  if (spec.sessionAffinity === 'None') delete spec.sessionAffinityConfig;
  else if (spec.sessionAffinity === 'ClientIP') {
    spec.sessionAffinityConfig ??= {};
    spec.sessionAffinityConfig.clientIP ??= {};
    spec.sessionAffinityConfig.clientIP.timeoutSeconds ??= AFFINITY_SECONDS;
  }
  if (!isSet(spec.type)) spec.type = 'ClusterIP';
  for (const port of spec.ports ?? []) {
    if (!isSet(port.protocol)) port.protocol = 'TCP';
    if (port.targetPort === undefined || port.targetPort === 0 || port.targetPort === '') port.targetPort = port.port;
  }
  if (isExternallyAccessible(spec) && !isSet(spec.externalTrafficPolicy)) spec.externalTrafficPolicy = 'Cluster';
  if (spec.type === 'ClusterIP' || needsNodePort(spec)) spec.internalTrafficPolicy ??= 'Cluster';
  if (spec.type !== 'LoadBalancer') return;
  spec.allocateLoadBalancerNodePorts ??= true;
  for (const ingress of service.status?.loadBalancer?.ingress ?? []) if (isSet(ingress.ip)) ingress.ipMode ??= 'VIP';
}

export function needsClusterIp(spec: ServiceSpec | undefined): boolean {
  return spec?.type === undefined || spec.type === 'ClusterIP' || needsNodePort(spec);
}

/** Whether traffic from outside the cluster may reach the service. */
export function isExternallyAccessible(spec: ServiceSpec): boolean {
  return needsNodePort(spec) || (spec.type === 'ClusterIP' && (spec.externalIPs ?? []).length > 0);
}

export function needsNodePort(spec: ServiceSpec | undefined): boolean {
  return spec?.type === 'NodePort' || spec?.type === 'LoadBalancer';
}

/**
 * Aligns clusterIP and clusterIPs. Clients that predate 1.20 know clusterIP only, so a change of clusterIP alone also
 * applies to clusterIPs.
 */
export function alignClusterIps(service: Service, old: Service): void {
  const spec = service.spec;
  const before = old.spec;
  if (spec === undefined || before === undefined || (spec.clusterIP ?? '') === (before.clusterIP ?? '')) return;
  if (!semanticEqual(spec.clusterIPs ?? [], before.clusterIPs ?? [])) return;
  if (isSet(spec.clusterIP)) spec.clusterIPs = [spec.clusterIP];
  else delete spec.clusterIPs;
}

/** Keeps allocated addresses and ports that the client did not send. */
export function keepAllocated(service: Service, old: Service): void {
  const spec = service.spec;
  const before = old.spec;
  if (spec === undefined || before === undefined) return;
  if (needsClusterIp(before) && needsClusterIp(spec)) {
    if (!isSet(spec.clusterIP)) {
      if (isSet(before.clusterIP)) spec.clusterIP = before.clusterIP;
      if ((spec.clusterIPs ?? []).length === 0 && before.clusterIPs !== undefined) spec.clusterIPs = before.clusterIPs;
    }
    if (before.ipFamilies !== undefined) spec.ipFamilies ??= before.ipFamilies;
    if (before.ipFamilyPolicy !== undefined) spec.ipFamilyPolicy ??= before.ipFamilyPolicy;
  }
  if (needsNodePort(before) && needsNodePort(spec)) keepNodePorts(spec.ports ?? [], before.ports ?? []);
  if (needsHealthCheckPort(before) && needsHealthCheckPort(spec) && (spec.healthCheckNodePort ?? 0) === 0) {
    if (before.healthCheckNodePort !== undefined) spec.healthCheckNodePort = before.healthCheckNodePort;
  }
}

/** Keeps the node ports of ports for which the update sends none, unless another port requests the same number. */
function keepNodePorts(ports: ServicePort[], before: readonly ServicePort[]): void {
  const used = new Set(ports.map((port) => `${port.protocol}/${port.nodePort ?? 0}`));
  const had = new Map(before.map((port) => [`${port.protocol}/${port.port}`, port]));
  for (const port of ports) {
    if ((port.nodePort ?? 0) !== 0) continue;
    const same = had.get(`${port.protocol}/${port.port}`);
    if (same?.nodePort !== undefined && !used.has(`${same.protocol}/${same.nodePort}`)) port.nodePort = same.nodePort;
  }
}

export function needsHealthCheckPort(spec: ServiceSpec): boolean {
  return spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local';
}

/** Drops fields that do not apply to the new type and that the client sent unchanged. */
export function dropForOtherType(service: Service, old: Service): void {
  const spec = service.spec;
  const before = old.spec;
  if (spec === undefined || before === undefined) return;
  if (isExternallyAccessible(before) && !isExternallyAccessible(spec)) {
    if (spec.externalTrafficPolicy === before.externalTrafficPolicy) delete spec.externalTrafficPolicy;
  }
  if (needsHealthCheckPort(before) && !needsHealthCheckPort(spec)) {
    if (spec.healthCheckNodePort === before.healthCheckNodePort) delete spec.healthCheckNodePort;
  }
  if (spec.type === before.type) return;
  if (needsClusterIp(before) && !needsClusterIp(spec)) {
    if (semanticEqual(spec.clusterIPs, before.clusterIPs)) {
      delete spec.clusterIP;
      delete spec.clusterIPs;
    }
    if (semanticEqual(spec.ipFamilies, before.ipFamilies)) delete spec.ipFamilies;
    if (spec.ipFamilyPolicy === before.ipFamilyPolicy) delete spec.ipFamilyPolicy;
  }
  if (needsNodePort(before) && !needsNodePort(spec)) {
    const had = new Set((before.ports ?? []).map((port) => port.nodePort));
    for (const port of spec.ports ?? []) if (had.has(port.nodePort)) delete port.nodePort;
  }
  if (before.type === 'LoadBalancer' && spec.type !== 'LoadBalancer') {
    if (spec.allocateLoadBalancerNodePorts === before.allocateLoadBalancerNodePorts) {
      delete spec.allocateLoadBalancerNodePorts;
    }
    if (spec.loadBalancerClass === before.loadBalancerClass) delete spec.loadBalancerClass;
  }
  if (spec.type === 'ExternalName' && spec.internalTrafficPolicy === before.internalTrafficPolicy) {
    delete spec.internalTrafficPolicy;
  }
}
