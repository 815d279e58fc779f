/** Backend pods of a service and their ports. Shared by endpoints and endpoint slices. */
import type { Pod, Service, ServicePort } from '../../../api/generated/core/v1.ts';
import { isPodTerminal } from '../../framework/core/pods.ts';

/**
 * Whether a pod is a backend: it has an address and has not finished. Terminating pods count if `includeTerminating` is
 * set.
 */
export function isBackend(pod: Pod, includeTerminating: boolean): boolean {
  if (isPodTerminal(pod) || (pod.status?.podIP ?? '') === '') return false;
  return includeTerminating || pod.metadata?.deletionTimestamp === undefined;
}

/** Number of a service port on this pod; undefined if the pod has no port of that name. */
export function targetPort(pod: Pod, port: ServicePort): number | undefined {
  const target = port.targetPort ?? port.port;
  if (typeof target === 'number') return target === 0 ? port.port : target;
  if (target === '') return port.port;
  const sidecars = (pod.spec?.initContainers ?? []).filter((container) => container.restartPolicy === 'Always');
  for (const container of [...(pod.spec?.containers ?? []), ...sidecars]) {
    for (const each of container.ports ?? []) {
      if (each.name === target && (each.protocol ?? 'TCP') === (port.protocol ?? 'TCP')) return each.containerPort;
    }
  }
  return undefined;
}

/** DNS name that a pod requests below a headless service. */
export function backendHostname(pod: Pod, service: Service): string | undefined {
  const hostname = pod.spec?.hostname ?? '';
  return hostname !== '' && pod.spec?.subdomain === service.metadata?.name ? hostname : undefined;
}

export function isHeadless(service: Service): boolean {
  return service.spec?.clusterIP === 'None';
}

/** Whether endpoints are generated for the service: it has a selector and is not of type ExternalName. */
export function hasManagedBackends(service: Service): boolean {
  return service.spec?.type !== 'ExternalName' && Object.keys(service.spec?.selector ?? {}).length > 0;
}

/** Text of all pod fields that endpoints depend on. If the text does not change, no new plan is needed. */
export function backendFacts(pod: Pod): string {
  const ready = pod.status?.conditions?.find((condition) => condition.type === 'Ready')?.status;
  return JSON.stringify([
    pod.status?.podIP,
    pod.status?.podIPs,
    ready,
    isPodTerminal(pod),
    pod.metadata?.deletionTimestamp !== undefined,
    pod.metadata?.labels,
    pod.spec?.nodeName,
    pod.spec?.hostname,
    pod.spec?.subdomain,
  ]);
}
