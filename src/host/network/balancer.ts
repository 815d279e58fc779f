/**
 * The node's balancer in front of the API servers. It learns their endpoints from the API, the gossip ring, the
 * bootstrap file and a file with the last known ones.
 */
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { EndpointSlice } from '../../api/generated/discovery/v1.ts';
import { resources } from '../../api/resources.ts';
import type { Log } from '../../base/log.ts';
import type { InformerFactory } from '../../client/index.ts';
import { BackendPool, parseTarget, targetOfUrl, targetText } from '../../network/balancer/core/index.ts';
import { createNodeBalancer, type NodeBalancer } from '../../network/balancer/index.ts';
import { createTcpBalancing } from '../../network/balancer/io/balancer.ts';
import { createKeeper, requestKeeper, runKeeper } from '../../network/balancer/io/keeper.ts';
import { createReadinessProbe } from '../../network/balancer/io/ready-probe.ts';
import { nodeFiles, writeIfDifferent } from '../../pki/index.ts';
import { canonicalRoot, pathsBelow } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import { selfCommand } from '../process/assets.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import { BALANCER_ADDRESS as LOOPBACK } from './balancer-url.ts';
import type { HostGossip } from './gossip.ts';

type BalancerSettings = Pick<
  Settings,
  'join' | 'masters' | 'nodeIpIsBridge' | 'nodeIps' | 'paths' | 'ports' | 'roles' | 'root'
>;

/** Starts the balancer. The caller has checked its port. Throws CodedErrors with address and port. */
export async function startBalancer(
  settings: BalancerSettings,
  gossip: Pick<HostGossip, 'followMasters'>,
  log: Log,
): Promise<NodeBalancer> {
  const { ports, roles, root } = settings;
  const { clientCa } = nodeFiles(root);
  const local = targetText({ host: LOOPBACK, port: ports.api });
  const balancer = createNodeBalancer({
    tcp: createTcpBalancing({ keeper: createKeeper([...selfCommand(), 'keep-balancer', '--root', root]) }),
    probe: createReadinessProbe({
      ca: () => readFile(clientCa, 'utf8').catch(() => undefined),
      // Name that the certificates of all API servers contain, because all clients connect through loopback.
      identity: LOOPBACK,
    }),
    saved: savedMasters(settings.paths.masters),
    clock,
    random,
    log,
    config: {
      address: LOOPBACK,
      port: ports.balancer,
      local: roles.has('master') ? { target: local, isSame: (target) => isOwn(target, settings) } : undefined,
      bootstrap: [...settings.masters, ...(settings.join === undefined ? [] : [settings.join.server])].flatMap(
        (url) => targetOfUrl(url) ?? [],
      ),
    },
  });
  await balancer.start();
  await requestKeeper(keeperSocket(settings), { relieve: true });
  gossip.followMasters(({ targets, failed }) => {
    balancer.setTargets('gossip', targets);
    if (failed !== undefined) balancer.doubt(failed);
  });
  return balancer;
}

const keeperSocket = ({ paths }: Pick<Settings, 'paths'>): string => join(paths.run, 'balancer-keeper.sock');

/** Whether a keeper process, which the previous host process has started, holds the balancer's port. */
export const isPortKept = (settings: Pick<Settings, 'paths'>): Promise<boolean> =>
  requestKeeper(keeperSocket(settings), { relieve: false });

/** Runs the keeper process, which listens on the balancer's port while the host process restarts. */
export async function keepBalancer(root: string | undefined): Promise<void> {
  const pool = new BackendPool();
  await runKeeper(keeperSocket({ paths: pathsBelow(await canonicalRoot(root)) }), {
    learn: (targets) => pool.setTargets('saved', targets),
    routing: {
      choose: (tried) => pool.choose(tried, random.random()),
      opened: (target) => pool.opened(target),
      closed: (target) => pool.closed(target),
      // The keeper sends no probes. A target that has failed is tried last.
      doubt: (target) => void pool.found(target, 'silent'),
    },
  });
}

/**
 * Sets the balancer's targets to the endpoints of the Service `kubernetes`. The service proxy uses the same informer.
 */
export function followApiServers(balancer: NodeBalancer, informers: InformerFactory): void {
  const learn = (slice: EndpointSlice): void => {
    if (slice.metadata?.namespace !== 'default' || slice.metadata.name !== 'kubernetes') return;
    const port = slice.ports?.find(({ name }) => name === 'https')?.port;
    if (port === undefined) return;
    const hosts = (slice.endpoints ?? []).flatMap(({ addresses }) => addresses);
    if (hosts.length > 0)
      balancer.setTargets(
        'api',
        hosts.map((host) => targetText({ host, port })),
      );
  };
  informers
    .informer(resources.endpointSlices, { lastKnown: { set: 'endpoint-slices' } })
    .onChange({ added: learn, updated: learn });
}

export function isOwnAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((each) => each?.some((own) => own.address === address));
}

function isOwn(target: string, { ports, nodeIpIsBridge, nodeIps }: BalancerSettings): boolean {
  const { host, port } = parseTarget(target) ?? {};
  if (port !== ports.api || host === undefined) return false;
  // The address of the pod bridge counts as own, although the bridge gets it only later.
  return isOwnAddress(host) || (nodeIpIsBridge && nodeIps.includes(host));
}

/** Reads and writes the addresses of API servers in a file with one `host:port` per line. */
function savedMasters(file: string) {
  return {
    load: async () => (await readFile(file, 'utf8').catch(() => '')).split('\n').filter((line) => line !== ''),
    save: async (targets: readonly string[]) => {
      await writeIfDifferent(file, `${targets.join('\n')}\n`, { mode: 0o644, durable: true });
    },
  };
}
