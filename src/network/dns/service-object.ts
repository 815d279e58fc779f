import type { Service } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { ApiClient, InformerFactory } from '../../client/types.ts';

export interface DnsServiceOptions {
  readonly informers: InformerFactory;
  /** Cluster IPs of the DNS service, of one or two address families. */
  readonly addresses: readonly string[];
  /** Opens a client that may create services. */
  openAdmin(): Promise<{ readonly client: ApiClient; close(): Promise<void> }>;
  readonly clock: Clock;
  readonly log: Log;
}

const NAMESPACE = 'kube-system';
const NAME = 'kube-dns';
const RETRY_MS = 10_000;

/**
 * Maintains the Service `kube-system/kube-dns`, the well-known name of cluster DNS. The Service has no endpoints,
 * because every host serves its cluster IP itself. Returns a function that stops the maintenance.
 */
export function keepDnsService(options: DnsServiceOptions): () => void {
  const { clock, log } = options;
  const services = options.informers.informer(resources.services, { lastKnown: { set: 'services' } });
  let timer: Timer | undefined;
  let busy = false;
  let stopped = false;
  const create = async (): Promise<void> => {
    const admin = await options.openAdmin();
    try {
      await admin.client.resource(resources.services).create(dnsService(options.addresses));
    } catch (error) {
      if (!isApiError(error, 'AlreadyExists')) throw error;
    } finally {
      await admin.close();
    }
  };
  const ensure = (): void => {
    if (stopped || busy || services.get(`${NAMESPACE}/${NAME}`) !== undefined) return;
    busy = true;
    create()
      .catch((error: unknown) => {
        log.warn('Service of cluster DNS not created; retrying', {
          service: `${NAMESPACE}/${NAME}`,
          error: messageOf(error),
        });
        if (!stopped) timer = clock.setTimer(RETRY_MS, ensure);
      })
      .finally(() => {
        busy = false;
      });
  };
  void services.listed.then(ensure);
  const unsubscribe = services.onChange({
    deleted: ({ metadata }) => {
      if (metadata?.namespace === NAMESPACE && metadata.name === NAME) ensure();
    },
  });
  return () => {
    stopped = true;
    timer?.cancel();
    unsubscribe();
  };
}

/** The Service, with the labels and ports that `kube-dns` has in every cluster, because programs search for them. */
function dnsService(addresses: readonly string[]): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: NAME,
      namespace: NAMESPACE,
      labels: { 'k8s-app': 'kube-dns', 'kubernetes.io/cluster-service': 'true', 'kubernetes.io/name': 'CoreDNS' },
    },
    spec: {
      type: 'ClusterIP',
      ...(addresses[0] === undefined ? {} : { clusterIP: addresses[0], clusterIPs: [...addresses] }),
      ipFamilyPolicy: addresses.length > 1 ? 'PreferDualStack' : 'SingleStack',
      ports: [
        { name: 'dns', port: 53, protocol: 'UDP', targetPort: 53 },
        { name: 'dns-tcp', port: 53, protocol: 'TCP', targetPort: 53 },
      ],
    },
  };
}
