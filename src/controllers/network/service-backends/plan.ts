/** Backend pods of a service and their ports. Shared by endpoints and endpoint slices. */
import type { Pod, Service, ServicePort } from '../../../api/generated/core/v1.ts';
import { isPodTerminal } from '../../framework/core/pods.ts';

/**
 * Whether a pod is a backend: it has an address and has not finished. Terminating pods count if `includeTerminating` is
 * set.
 */
export function isBackend(pod: Pod, { includeTerminating }: { readonly includeTerminating: boolean }): boolean {
  if (isPodTerminal(pod) || (pod.status?.podIP ?? '') === '') return false;
  return includeTerminating || pod.metadata?.deletionTimestamp === undefined;
}

/** Numbers of the ports of a service, in their order; undefined for a port that the pod does not have. */
export type TargetPorts = readonly (number | undefined)[];

/**
 * Returns the target ports of a pod. Pods with equal target ports get the same array, so that callers compute what
 * depends on the ports once: a service can have thousands of ports and thousands of pods.
 */
export function targetPortsOf(service: Service): (pod: Pod) => TargetPorts {
  const declared = service.spec?.ports ?? [];
  const names = new Set(declared.flatMap((port) => nameOf(port) ?? []));
  const known = new Map<string, TargetPorts>();
  return (pod) => {
    const numbers = names.size === 0 ? NO_NAMES : namedPorts(pod, names);
    const key = names.size === 0 ? '' : JSON.stringify([...numbers]);
    const found = known.get(key);
    if (found !== undefined) return found;
    const ports = declared.map((port) => {
      const name = nameOf(port);
      if (name !== undefined) return numbers.get(name);
      const target = port.targetPort;
      return typeof target === 'number' && target !== 0 ? target : port.port;
    });
    known.set(key, ports);
    return ports;
  };
}

const NO_NAMES: ReadonlyMap<string, number> = new Map();

/** `protocol name` of a named target port. */
const nameOf = ({ targetPort, protocol = 'TCP' }: ServicePort): string | undefined =>
  typeof targetPort === 'string' && targetPort !== '' ? `${protocol} ${targetPort}` : undefined;

/** Numbers of the pod's ports with these names. The first port of a name applies. */
function namedPorts({ spec }: Pod, names: ReadonlySet<string>): Map<string, number> {
  const found = new Map<string, number>();
  const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  for (const { ports = [] } of [...(spec?.containers ?? []), ...sidecars]) {
    for (const { name, protocol = 'TCP', containerPort } of ports) {
      const key = `${protocol} ${name}`;
      if (names.has(key) && !found.has(key)) found.set(key, containerPort);
    }
  }
  return found;
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
