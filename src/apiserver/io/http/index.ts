/** HTTP of the API server: TLS listener and connections to backends; and the listener of the kubelet. */
import type { EgressProxy, HttpPort, Network } from '../../port.ts';
import { createBackends } from './backend.ts';
import { listen } from './listener.ts';

/** `egress`: the networks that are reached through a proxy. */
export function createHttp(egress: ReadonlyMap<Network, EgressProxy> = new Map()): HttpPort {
  return { listen, backends: createBackends(egress) };
}
