/**
 * The service proxy of one node (OKD 3.11 "Service Proxy", row B3): watches services and endpoint slices and keeps the
 * node forwarding them, by packet filter where the kernel has nft and by forwarding streams itself where it has not.
 */
import type { Node, Service } from 'kubernetes-types/core/v1';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import { resources } from '../../api/resources.ts';
import type { Clock, RandomSource } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Informer, InformerFactory } from '../../client/types.ts';
import { desiredServicePorts } from '../../core/ruleset/index.ts';
import type { PacketFilter, StreamForwarder } from '../../core/ruleset/port.ts';
import { createFilterMode } from './filter-mode.ts';
import type { ProxyConfig, ProxyMode } from './mode.ts';
import { createUserspaceMode } from './userspace-mode.ts';

export interface ProxyDeps {
  readonly informers: InformerFactory;
  readonly packetFilter: PacketFilter;
  readonly forwarder: StreamForwarder;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly config: ProxyConfig;
}

export interface Proxy {
  /** Resolves once the first complete state is in force. */
  start(): Promise<void>;
  /** `keepRules` leaves traffic flowing, for a restart of the host process. */
  stop(options?: { readonly keepRules?: boolean }): Promise<void>;
}

/** Changes that arrive together are applied together: a roll-out touches many endpoints within milliseconds. */
const COALESCE_MS = 10;
const RETRY_MIN_MS = 100;
const RETRY_MAX_MS = 30_000;

export function createProxy(deps: ProxyDeps): Proxy {
  const services: Informer<Service> = deps.informers.informer(resources.services);
  const slices: Informer<EndpointSlice> = deps.informers.informer(resources.endpointSlices);
  /** For the addresses of other hosts; forwarding does not wait for them. */
  const nodes: Informer<Node> = deps.informers.informer(resources.nodes);
  /** What was reported as not forwarded, so that it is logged once. */
  let refusals = new Set<string>();
  const unsubscribe: (() => void)[] = [];
  let mode: ProxyMode | undefined;
  let running = false;
  let dirty = false;
  let loop: Promise<void> | undefined;
  let wake: (() => void) | undefined;

  const touch = (): void => {
    dirty = true;
    wake?.();
  };
  const pause = (delayMs: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = deps.clock.setTimer(delayMs, resolve);
      wakeOnStop = () => {
        timer.cancel();
        resolve();
      };
    });
  let wakeOnStop: (() => void) | undefined;

  const syncOnce = async (chosen: ProxyMode): Promise<void> => {
    dirty = false;
    const { nodeName, serviceCidr, clusterCidr, reservedPorts, hostAddresses } = deps.config;
    const { ports, refused } = desiredServicePorts({
      services: services.list(),
      slices: slices.list(),
      nodes: nodes.list(),
      hostAddresses: hostAddresses(),
      ...{ nodeName, serviceCidr, clusterCidr, reservedPorts },
    });
    const before = refusals;
    refusals = new Set(refused.map(({ service, address }) => `${service} ${address}`));
    for (const { service, address, why } of refused) {
      if (!before.has(`${service} ${address}`))
        deps.log.warn('service address not forwarded', { service, address, why });
    }
    await chosen.sync(ports);
  };

  const run = async (chosen: ProxyMode): Promise<void> => {
    let retryMs = RETRY_MIN_MS;
    while (running) {
      if (!dirty) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = undefined;
        await pause(COALESCE_MS);
        continue;
      }
      try {
        await syncOnce(chosen);
        retryMs = RETRY_MIN_MS;
      } catch (error) {
        deps.log.warn('service rules could not be applied; trying again', { error: messageOf(error), retryMs });
        dirty = true;
        await pause(retryMs);
        retryMs = Math.min(retryMs * 2, RETRY_MAX_MS);
      }
    }
  };

  return {
    async start() {
      running = true;
      mode = await chooseMode(deps);
      deps.log.info('service proxy starts', { mode: mode.name });
      await mode.prepare().catch((error: unknown) => {
        deps.log.warn('rules of an earlier process could not be restricted', { error: messageOf(error) });
      });
      for (const informer of [services, slices, nodes]) {
        unsubscribe.push(informer.onChange({ added: touch, updated: touch, deleted: touch }));
        informer.start();
      }
      await Promise.all([services.synced, slices.synced]);
      if (!running) return;
      await syncOnce(mode).catch((error: unknown) => {
        deps.log.warn('service rules could not be applied; trying again', { error: messageOf(error) });
        dirty = true;
      });
      loop = run(mode);
    },
    async stop(options) {
      running = false;
      for (const each of unsubscribe) each();
      wake?.();
      wakeOnStop?.();
      await loop;
      if (options?.keepRules !== true) await mode?.stop();
    },
  };
}

async function chooseMode(deps: ProxyDeps): Promise<ProxyMode> {
  if (deps.config.mode !== 'userspace') {
    const problem = await deps.packetFilter.probe();
    if (problem === undefined) return createFilterMode(deps);
    if (deps.config.mode === 'nftables') throw new Error(`proxy mode nftables is not possible here: ${problem}`);
    deps.log.warn('no usable nft on this host; forwarding service traffic in this process', { why: problem });
  }
  return createUserspaceMode(deps);
}
