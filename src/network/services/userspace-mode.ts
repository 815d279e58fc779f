import { BoundedMap } from '../../base/bounded-map.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import type { ServicePort } from './core/index.ts';
import type { ForwardTarget, Listener, PacketFilter, PickTarget, StreamForwarder } from './core/port.ts';
import type { ProxyConfig, ProxyMode } from './mode.ts';

interface Deps {
  readonly packetFilter: PacketFilter;
  readonly forwarder: StreamForwarder;
  readonly config: ProxyConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: RandomSource;
}

interface Front {
  readonly protocol: 'TCP' | 'UDP';
  readonly ip: string | undefined;
  readonly port: number;
  readonly external: boolean;
}

/** Maximum number of remembered session affinity clients per service port. */
const MAX_AFFINITY_CLIENTS = 4_096;

/** Binds each service address on this host and forwards TCP and UDP in user space (OKD 3.11 "Service Proxy"). */
export function createUserspaceMode(deps: Deps): ProxyMode {
  const listeners = new Map<string, Listener>();
  const addresses = new Set<string>();
  /**
   * Current ports by ID. Listeners read this map at each connection, so a change of back ends does not affect a
   * listener.
   */
  const ports = new Map<string, ServicePort>();
  const affinity = new Map<string, BoundedMap<string, { target: ForwardTarget; untilMs: number }>>();

  const pickFor =
    (id: string, external: boolean): PickTarget =>
    (clientIp) => {
      const port = ports.get(id);
      if (port === undefined) return undefined;
      const endpoints = external ? port.externalEndpoints : port.endpoints;
      const chosen = endpoints[Math.floor(deps.random.random() * endpoints.length)];
      if (chosen === undefined || port.affinitySeconds === 0) return chosen;
      let clients = affinity.get(id);
      if (clients === undefined) {
        clients = new BoundedMap(MAX_AFFINITY_CLIENTS);
        affinity.set(id, clients);
      }
      const nowMs = deps.clock.monotonicMs();
      const sticky = clients.get(clientIp);
      const usable =
        sticky !== undefined &&
        sticky.untilMs > nowMs &&
        endpoints.some((each) => each.ip === sticky.target.ip && each.port === sticky.target.port);
      const target = usable ? sticky.target : { ip: chosen.ip, port: chosen.port };
      // When the map is full, the client that has been unused the longest is evicted.
      clients.set(clientIp, { target, untilMs: nowMs + port.affinitySeconds * 1_000 });
      return target;
    };

  return {
    name: 'userspace',
    async prepare() {
      // Rules of an earlier process in nftables mode would take precedence over the listeners.
      const { table } = deps.config;
      await deps.packetFilter
        .apply(`add table ip ${table}\ndelete table ip ${table}\n`)
        .catch((error: unknown) => deps.log.v(2, 'service rules not removed', { error: messageOf(error) }));
    },
    *change() {},
    async sync(all) {
      const given = all();
      const desired = given.filter(({ family }) => family === 4);
      if (desired.length < given.length) deps.log.v(2, 'IPv6 services need nft; not forwarded');
      const hostAddresses = new Set(deps.config.hostAddresses());
      ports.clear();
      for (const port of desired) ports.set(port.id, port);
      for (const id of affinity.keys()) if (!ports.has(id)) affinity.delete(id);
      const wanted = new Map<string, { front: Front; id: string }>();
      const wantedAddresses = new Set<string>();
      for (const port of desired) {
        if (port.protocol === 'SCTP') {
          deps.log.v(2, 'SCTP needs nft; not forwarded', { service: port.id });
          continue;
        }
        for (const front of frontsOf(port, port.protocol)) {
          if (front.ip !== undefined && !hostAddresses.has(front.ip)) wantedAddresses.add(front.ip);
          // The key contains the service port's ID, so that a listener serves the same service port for its whole
          // lifetime.
          wanted.set(`${front.protocol} ${front.ip ?? '*'}:${front.port} ${port.id}`, { front, id: port.id });
        }
      }
      for (const [key, listener] of listeners) {
        if (wanted.has(key)) continue;
        listeners.delete(key);
        await listener.close();
      }
      for (const ip of addresses) {
        if (wantedAddresses.has(ip)) continue;
        await deps.forwarder.unbindAddress(ip);
        addresses.delete(ip);
      }
      for (const ip of wantedAddresses) {
        if (addresses.has(ip)) continue;
        await deps.forwarder.bindAddress(ip);
        addresses.add(ip);
      }
      // A port in use by another process of the host must not block the listeners of other services.
      const failures: unknown[] = [];
      for (const [key, { front, id }] of wanted) {
        if (listeners.has(key)) continue;
        await deps.forwarder.listen(front.protocol, front.ip, front.port, pickFor(id, front.external)).then(
          (listener) => listeners.set(key, listener),
          (error: unknown) => failures.push(error),
        );
      }
      if (failures.length > 0) throw failures[0];
    },
    async stop() {
      ports.clear();
      await Promise.all([...listeners.values()].map((listener) => listener.close()));
      listeners.clear();
      for (const ip of addresses) await deps.forwarder.unbindAddress(ip);
      addresses.clear();
    },
  };
}

function frontsOf(port: ServicePort, protocol: 'TCP' | 'UDP'): Front[] {
  const fronts: Front[] = port.clusterIps.map((ip) => ({ protocol, ip, port: port.port, external: false }));
  // The external address is bound on this host, so that the host accepts traffic that the network routes to it.
  for (const ip of port.externalIps) fronts.push({ protocol, ip, port: port.port, external: true });
  if (port.nodePort > 0) fronts.push({ protocol, ip: undefined, port: port.nodePort, external: true });
  return fronts;
}
