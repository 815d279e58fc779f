/**
 * Cluster DNS of this host: the DNS component with its sockets, its link, and the host's resolver configuration as
 * upstream.
 */
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import type { InformerFactory } from '../../client/index.ts';
import { createFileWatch } from '../../kubelet/io/host-facts/index.ts';
import { createDnsServer, type DnsServer, keepDnsService, parseServer } from '../../network/dns/index.ts';
import { createDnsCodec } from '../../network/dns/io/codec.ts';
import { createDnsSockets } from '../../network/dns/io/sockets.ts';
import { createUpstreamExchange } from '../../network/dns/io/upstream.ts';
import { createServiceLink } from '../../network/pods/io/index.ts';
import { masterFiles } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';
import { openClient } from '../process/api-access.ts';

const PORT = 53;
const RESOLVER_FILE = '/etc/resolv.conf';
/**
 * File with the upstream servers of systemd-resolved. In its resolv.conf, only systemd-resolved's own loopback address
 * is listed.
 */
const RESOLVED_FILE = '/run/systemd/resolve/resolv.conf';
const STUB = /^127\.0\.0\.5[34]$/;
/** Interval between checks of the file. A watch would end when a DHCP client replaces the file. */
const CHECK_MS = 10_000;

export interface ClusterDnsOptions {
  readonly settings: Settings;
  readonly informers: InformerFactory;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
}

export interface HostDns extends DnsServer {
  /** Binds the Service address again if another program has removed it. */
  verify(): void;
}

export function hostDns({ settings, informers, clock, random, log }: ClusterDnsOptions): HostDns {
  const { network, dns } = settings;
  const addresses = [network.dnsIp];
  const servers = (texts: readonly string[]) => texts.flatMap((text) => parseServer(text) ?? []);
  const link = createServiceLink({ link: dns.link });
  let isStarted = false;
  const verify = (): void => {
    if (!isStarted) return;
    const bindAgain = async (): Promise<void> => {
      if (await link.isBound(addresses)) return;
      log.warn('address of the DNS service bound again', { link: dns.link });
      await link.bind(addresses);
    };
    bindAgain().catch((error: unknown) =>
      log.warn('address of the DNS service not bound', { error: messageOf(error) }),
    );
  };
  const server = createDnsServer({
    config: {
      zone: network.clusterDomain.toLowerCase(),
      ttlSeconds: dns.ttlSeconds,
      addresses,
      port: PORT,
      ranges: [...network.clusterCidrs, ...network.serviceCidrs],
      podRanges: network.clusterCidrs,
      hostAddresses: () => Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map((one) => one.address)),
      upstreams: dns.upstreams === undefined ? undefined : servers(dns.upstreams),
      routes: settings.router.enabled
        ? { domain: settings.openshift.domain, ttlSeconds: dns.ttlSeconds, addresses: settings.nodeIps }
        : undefined,
      stubDomains: new Map([...dns.stubDomains].map(([domain, list]) => [domain.toLowerCase(), servers(list)])),
    },
    informers,
    sockets: createDnsSockets(),
    exchange: createUpstreamExchange(),
    codec: createDnsCodec(),
    link,
    hostServers: {
      read: async () => servers(await hostServers()),
      onChange: (listener) => onResolverChange(listener, clock),
    },
    clock,
    random,
    log,
  });
  const started = async (): Promise<void> => {
    await server.start();
    isStarted = true;
  };
  if (!settings.roles.has('master')) {
    return {
      verify,
      start: started,
      stop: (options) => {
        isStarted = false;
        return server.stop(options);
      },
    };
  }
  const { adminKubeconfig } = masterFiles(settings.root);
  const stopService = keepDnsService({
    informers,
    addresses,
    openAdmin: () => openClient(adminKubeconfig, 'hyperedge', { clock, random, log }),
    clock,
    log,
  });
  return {
    verify,
    start: started,
    stop: (options) => {
      isStarted = false;
      stopService();
      return server.stop(options);
    },
  };
}

async function hostServers(): Promise<string[]> {
  const own = nameservers(await text(RESOLVER_FILE));
  if (own.length === 0 || !own.every((address) => STUB.test(address))) return own;
  const behind = nameservers(await text(RESOLVED_FILE));
  return behind.length > 0 ? behind : own;
}

/**
 * Name servers in a resolv.conf. An address with a zone, such as fe80::1%eth0, is omitted, because pods cannot use it.
 * Source: resolv.conf(5).
 */
function nameservers(content: string): string[] {
  return content.split('\n').flatMap((line) => {
    const [keyword, address = ''] = line.trim().split(/\s+/);
    return keyword === 'nameserver' && address !== '' ? [address] : [];
  });
}

const text = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');

function onResolverChange(listener: () => void, clock: Clock): () => void {
  const watches = [RESOLVER_FILE, RESOLVED_FILE].map((path) => createFileWatch().watch(path, listener));
  let timer = clock.setTimer(CHECK_MS, check);
  function check(): void {
    listener();
    timer = clock.setTimer(CHECK_MS, check);
  }
  return () => {
    timer.cancel();
    for (const watch of watches) watch.close();
  };
}
