/** The API server's network: TLS listener and connections to kubelets. */
import type { EgressProxy, HttpPort, Network } from '../../components/apiserver/port.ts';
import { createBackends } from './backend.ts';
import { listen } from './listener.ts';

/** `egress`: the networks that are reached through a proxy. */
export function createHttp(egress: ReadonlyMap<Network, EgressProxy> = new Map()): HttpPort {
  return { listen, backends: createBackends(egress) };
}
