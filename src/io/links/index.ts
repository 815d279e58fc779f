/**
 * The embedded pod network of one node: a bridge, a veth pair per pod, host-local addresses from the node's pod range.
 *
 * A pod's address is a /32 whose only neighbour is the gateway, and the host has a route to each pod's link: traffic between two pods of one
 * node is routed by the host, never switched. So service addresses work between them whether or not br_netfilter is loaded (answers pass
 * the host's connection tracking in any case), and one set of filter rules sees all pod traffic. The bridge holds the gateway's address
 * and whatever else joins the pods' network (docs/decisions/0004).
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { isIPv4 } from 'node:net';
import { join } from 'node:path';
import type { ReservedPort } from '../../api/kinds/nodes/host-ports.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { PortMapping } from '../../core/podplan/port.ts';
import { RuntimeError } from '../../core/podplan/port.ts';
import type { PodEndpoint, PodNetwork } from '../oci/port.ts';
import { gatewayOf, nextFree, parseRange, type Range, toNumber, toText } from './addresses.ts';
import { command } from './command.ts';
import { collides, isReserved, podTable } from './filter.ts';
import { isInUse } from './sockets.ts';

export interface BridgeNetworkOptions {
  /** Records of attached sandboxes; survives restarts of the host process. */
  readonly stateDirectory: string;
  /** Name of the bridge; up to 15 characters. */
  readonly bridge: string;
  /** All pods of the cluster: traffic to it is never masqueraded. */
  readonly clusterCidr: string;
  readonly nftTable: string;
  /** The service range: host ports never take what is sent to it. */
  readonly serviceCidr: string;
  /** Ports on which the host itself listens; asked whenever rules are written or a pod is attached. */
  readonly reservedPorts: () => readonly ReservedPort[];
  /** 0: the kernel's default. */
  readonly mtu?: number;
  readonly ipPath?: string;
  readonly nftPath?: string;
  readonly nsenterPath?: string;
  readonly log: Log;
}

export interface BridgeNetwork extends PodNetwork {
  /** The gateway address once the pod range is known. */
  readonly gateway: string | undefined;
  /** Removes the bridge, all pod links and the filter table. */
  destroy(): Promise<void>;
}

interface Attachment {
  readonly sandboxId: string;
  readonly ip: string;
  readonly link: string;
  readonly portMappings: readonly PortMapping[];
}

export function createBridgeNetwork(options: BridgeNetworkOptions): BridgeNetwork {
  const ip = options.ipPath ?? 'ip';
  const nft = options.nftPath ?? 'nft';
  const nsenter = options.nsenterPath ?? 'nsenter';
  const { bridge, log } = options;
  const attachments = new Map<string, Attachment>();
  const taken = new Set<number>();
  let range: Range | undefined;
  let last = 0;
  let loaded: Promise<void> | undefined;
  /** Changes of the filter table are applied one after the other, always from the newest state. */
  let filtering: Promise<void> = Promise.resolve();
  let filterWorks = true;

  const recordPath = (sandboxId: string): string => join(options.stateDirectory, `${sandboxId}.json`);

  const load = (): Promise<void> => {
    loaded ??= (async () => {
      await mkdir(options.stateDirectory, { recursive: true, mode: 0o700 });
      for (const name of await readdir(options.stateDirectory)) {
        if (!name.endsWith('.json')) continue;
        try {
          const record = JSON.parse(await readFile(join(options.stateDirectory, name), 'utf8')) as Attachment;
          if (!isIPv4(record.ip) || typeof record.link !== 'string') throw new Error('not a pod network record');
          attachments.set(record.sandboxId, record);
          taken.add(toNumber(record.ip));
          last = Math.max(last, toNumber(record.ip));
        } catch (error) {
          // Half-written at a power cut: the sandbox it was for never came to be.
          log.warn('dropping an unreadable pod network record', { name, error: messageOf(error) });
          await rm(join(options.stateDirectory, name), { force: true });
        }
      }
    })();
    return loaded;
  };

  const applyFilter = (): Promise<void> => {
    const next = filtering.then(async () => {
      if (range === undefined || !filterWorks) return;
      await command(
        nft,
        ['-f', '-'],
        podTable({ ...options, reservedPorts: options.reservedPorts(), table: options.nftTable }, range, [
          ...attachments.values(),
        ]),
      );
    });
    filtering = next.catch(() => {});
    return next;
  };

  /** The link takes loopback addresses only once the rules stand that keep its pod from the host's loopback. */
  const openHostPorts = async (link: string): Promise<void> => {
    await applyFilter();
    await sysctl(`net/ipv4/conf/${link}/route_localnet`, '1', log);
  };

  const forget = async (attachment: Attachment): Promise<void> => {
    await command(ip, ['link', 'del', attachment.link]).catch((error: unknown) => {
      // The namespace that held the other end may have taken the pair with it.
      if (!/Cannot find device/.test(messageOf(error))) throw error;
    });
    await rm(recordPath(attachment.sandboxId), { force: true });
    attachments.delete(attachment.sandboxId);
    taken.delete(toNumber(attachment.ip));
  };

  return {
    get gateway() {
      return range === undefined ? undefined : toText(gatewayOf(range));
    },

    async setPodCidr(cidr) {
      await load();
      let next: Range;
      try {
        next = parseRange(cidr);
      } catch (error) {
        throw new RuntimeError('network', `pod CIDR: ${messageOf(error)}`);
      }
      if (range !== undefined && range.base === next.base && range.bits === next.bits) return;
      const gateway = `${toText(gatewayOf(next))}/${next.bits}`;
      // The address of its own keeps the bridge's from changing with its ports, which would break neighbour caches.
      const mac = `0a:58:${toText(gatewayOf(next))
        .split('.')
        .map((part) => Number(part).toString(16).padStart(2, '0'))
        .join(':')}`;
      await command(ip, ['link', 'add', bridge, 'address', mac, 'type', 'bridge']).catch((error: unknown) => {
        if (!/File exists/.test(messageOf(error))) throw error;
      });
      const present = await command(ip, ['-o', '-4', 'addr', 'show', 'dev', bridge]);
      const stale = [...present.matchAll(/inet (\S+)/g)]
        .map((match) => match[1] ?? '')
        .filter((each) => each !== gateway);
      await command(
        ip,
        ['-batch', '-'],
        [
          ...stale.map((each) => `addr del ${each} dev ${bridge}`),
          `addr replace ${gateway} dev ${bridge}`,
          ...(options.mtu === undefined || options.mtu === 0 ? [] : [`link set ${bridge} mtu ${options.mtu}`]),
          `link set ${bridge} up`,
          '',
        ].join('\n'),
      );
      await Promise.all([
        sysctl('net/ipv4/ip_forward', '1', log),
        // Pods reach each other through the gateway on purpose; the kernel would tell them of a shorter way.
        sysctl('net/ipv4/conf/all/send_redirects', '0', log),
        sysctl(`net/ipv4/conf/${bridge}/send_redirects`, '0', log),
      ]);
      range = next;
      try {
        await applyFilter();
      } catch (error) {
        filterWorks = false;
        log.warn(
          'no packet filter: pods reach other hosts only where pod addresses are routed, and host ports are closed',
          {
            error: messageOf(error),
          },
        );
      }
      log.info('pod network ready', { bridge, podCIDR: cidr, gateway: toText(gatewayOf(next)) });
    },

    async attach(netnsPath, pod: PodEndpoint) {
      await load();
      const inUse = attachments.has(pod.sandboxId) ? undefined : await firstInUse(pod.portMappings);
      const known = attachments.get(pod.sandboxId);
      if (known !== undefined) return { ips: [known.ip] };
      if (range === undefined) throw new RuntimeError('network', 'the node has no pod CIDR yet; pods wait for it');
      checkHostPorts(pod.portMappings, [...attachments.values()], options.reservedPorts());
      if (inUse !== undefined)
        throw new RuntimeError('network', `host port ${nameOf(inUse)} is in use by a process of this host`);
      if (pod.portMappings.length > 0 && !filterWorks)
        throw new RuntimeError('network', 'host ports need nft, which does not work on this host');
      const address = nextFree(range, last, (each) => taken.has(each));
      if (address === undefined)
        throw new RuntimeError('network', `no free address in ${toText(range.base)}/${range.bits}`);
      // Taken before the first await, so that two attaches never choose the same.
      taken.add(address);
      last = address;
      const attachment: Attachment = {
        sandboxId: pod.sandboxId,
        ip: toText(address),
        link: linkName(address, bridge),
        portMappings: pod.portMappings,
      };
      attachments.set(pod.sandboxId, attachment);
      const gateway = toText(gatewayOf(range));
      try {
        await writeRecord(recordPath(pod.sandboxId), attachment);
        await command(
          ip,
          ['-batch', '-'],
          [
            `link add ${attachment.link} type veth peer name eth0 netns ${netnsPath}`,
            `link set ${attachment.link} up`,
            `route add ${attachment.ip}/32 dev ${attachment.link} src ${gateway}`,
            '',
          ].join('\n'),
        );
        await Promise.all([
          command(
            nsenter,
            [`--net=${netnsPath}`, ip, '-batch', '-'],
            [
              'link set lo up',
              `addr add ${attachment.ip}/32 dev eth0`,
              ...(options.mtu === undefined || options.mtu === 0 ? [] : [`link set eth0 mtu ${options.mtu}`]),
              'link set eth0 up',
              `route add ${gateway} dev eth0 scope link`,
              `route add default via ${gateway} dev eth0`,
              '',
            ].join('\n'),
          ),
          pod.portMappings.length > 0 ? openHostPorts(attachment.link) : undefined,
        ]);
      } catch (error) {
        await forget(attachment).catch((again: unknown) =>
          log.warn('pod network clean-up failed', { sandbox: pod.sandboxId, error: messageOf(again) }),
        );
        throw error;
      }
      log.v(4, 'pod attached', { pod: `${pod.namespace}/${pod.name}`, ip: attachment.ip, link: attachment.link });
      return { ips: [attachment.ip] };
    },

    async detach(sandboxId) {
      await load();
      const attachment = attachments.get(sandboxId);
      if (attachment === undefined) return;
      await forget(attachment);
      if (attachment.portMappings.length > 0) await applyFilter();
    },

    async retain(alive) {
      await load();
      for (const attachment of [...attachments.values()]) {
        if (alive.has(attachment.sandboxId)) continue;
        await forget(attachment);
      }
      await applyFilter();
    },

    async destroy() {
      await load();
      for (const attachment of [...attachments.values()]) await forget(attachment);
      await command(ip, ['link', 'del', bridge]).catch(() => {});
      if (filterWorks && range !== undefined)
        await command(
          nft,
          ['-f', '-'],
          `add table ip ${options.nftTable}\ndelete table ip ${options.nftTable}\n`,
        ).catch(() => {});
      range = undefined;
    },
  };
}

const nameOf = ({ hostPort, protocol }: PortMapping): string => `${hostPort}/${protocol}`;

/** Throws RuntimeErrors for what is no host port to have. */
function checkHostPorts(
  wanted: readonly PortMapping[],
  others: readonly Attachment[],
  reservedPorts: readonly ReservedPort[],
): void {
  for (const mapping of wanted) {
    if (mapping.hostIp !== '' && !isIPv4(mapping.hostIp))
      throw new RuntimeError('network', `host port address "${mapping.hostIp}" is not an IPv4 address`);
    if (isReserved(mapping, reservedPorts))
      throw new RuntimeError('network', `host port ${nameOf(mapping)} is a port of this host itself`);
    if (others.some(({ portMappings }) => portMappings.some((each) => collides(each, mapping))))
      throw new RuntimeError('network', `host port ${nameOf(mapping)} is taken by another pod`);
  }
}

async function firstInUse(mappings: readonly PortMapping[]): Promise<PortMapping | undefined> {
  for (const mapping of mappings) if (await isInUse(mapping)) return mapping;
  return undefined;
}

/** Unique per address and bridge, and found again by whoever looks at `ip link`: `ve0a800005` and the bridge's check letters. */
function linkName(address: number, bridge: string): string {
  let check = 0;
  for (const character of bridge) check = (check * 31 + character.charCodeAt(0)) & 0xfff;
  return `ve${address.toString(16).padStart(8, '0')}${check.toString(16).padStart(3, '0')}`;
}

async function writeRecord(path: string, record: Attachment): Promise<void> {
  const temporary = `${path}.new`;
  await writeFile(temporary, JSON.stringify(record), { mode: 0o600 });
  await rename(temporary, path);
}

/** Written only when it differs: /proc/sys may be read-only where the host's owner has set things up already. */
async function sysctl(name: string, value: string, log: Log): Promise<void> {
  const path = `/proc/sys/${name}`;
  try {
    if ((await readFile(path, 'utf8')).trim() !== value) await writeFile(path, value);
  } catch (error) {
    log.warn('kernel setting could not be made', {
      setting: name.replaceAll('/', '.'),
      value,
      error: messageOf(error),
    });
  }
}
