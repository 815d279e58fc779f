/** HTTP of the API server: the TLS listener, which the kubelet also uses, and connections to backends. */
import { DIRECT, type OutboundSettings } from '../../../wire/outbound/proxy-choice.ts';
import type { EgressProxy, HttpPort, Network } from '../../port.ts';
import { createBackends } from './backend.ts';
import { listen } from './listener.ts';

/**
 * `egress`: the networks that are reached through a proxy. `outbound` applies to servers that are named by a URL, such
 * as webhooks and issuers of tokens, when their network has no egress proxy.
 */
export function createHttp(
  egress: ReadonlyMap<Network, EgressProxy> = new Map(),
  outbound: OutboundSettings = DIRECT,
): HttpPort {
  return { listen, backends: createBackends(egress, outbound) };
}
