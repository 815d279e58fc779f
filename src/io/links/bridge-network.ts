/**
 * The embedded pod network of one node: a bridge, a veth pair per pod, host-local addresses from the node's pod range.
 *
 * A pod's address is a /32 whose only neighbour is the gateway, and the host has a route to each pod's link: traffic
 * between two pods of one node is routed by the host, never switched. So service addresses work between them whether or
 * not br_netfilter is loaded (answers pass the host's connection tracking in any case), and one set of filter rules
 * sees all pod traffic. The bridge holds the gateway's address and whatever else joins the pods' network
 * (docs/decisions/0004).
 */
import { isIP } from 'node:net';
import type { ReservedPort } from '../../api/kinds/nodes/host-ports.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { addressText, addressValue, type Network, networkText, parseNetwork } from '../../base/networks.ts';
import type { PortMapping } from '../../core/podplan/port.ts';
import { RuntimeError } from '../../core/podplan/port.ts';
import type { PodEndpoint, PodNetwork } from '../oci/port.ts';
import { AddressBook, gatewayOf } from './addresses.ts';
import { type Attachment, AttachmentFiles } from './attachments.ts';
import { command } from './command.ts';
import { collides, isReserved, podTable } from './filter.ts';
import { forwardIpv6, setKernel } from './kernel-setting.ts';
import { isInUse } from './sockets.ts';

export interface BridgeNetworkOptions {
  /** Records of attached sandboxes; survives restarts of the host process. */
  readonly stateDirectory: string;
  /** Name of the bridge; up to 15 characters. */
  readonly bridge: string;
  /** All pods of the cluster, a range per family: traffic to them is never masqueraded. */
  readonly clusterCidrs: readonly string[];
  readonly nftTable: string;
  /** The service ranges: host ports never take what is sent to them. */
  readonly serviceCidrs: readonly string[];
  /** Ports on which the host itself listens; asked whenever rules are written or a pod is attached. */
  readonly reservedPorts: () => readonly ReservedPort[];
  readonly ipPath?: string;
  readonly nftPath?: string;
  readonly nsenterPath?: string;
  readonly log: Log;
}

export interface BridgeNetwork extends PodNetwork {
  reserve: NonNullable<PodNetwork['reserve']>;
  /** The primary family's gateway address once the pod ranges are known. */
  readonly gateway: string | undefined;
  /** Sets the MTU of pods' links, those of running pods included. Never rejects. */
  setMtu(mtu: number): Promise<void>;
  /** Removes the bridge, all pod links and the filter tables. */
  destroy(): Promise<void>;
}

/** The address of every pod link's host end: the next hop of its pod's IPv6 traffic. */
const LINK_GATEWAY = 'fe80::1';
/** Processes at a time that set the MTU of running pods. */
const MTU_BATCH = 8;

export function createBridgeNetwork(options: BridgeNetworkOptions): BridgeNetwork {
  return new NftBridgeNetwork(options);
}

const gatewayText = (range: Network): string => addressText(gatewayOf(range), range.family);

class NftBridgeNetwork implements BridgeNetwork {
  readonly #options: BridgeNetworkOptions;
  readonly #ip: string;
  readonly #nft: string;
  readonly #nsenter: string;
  readonly #bridge: string;
  readonly #log: Log;
  readonly #files: AttachmentFiles;
  readonly #attachments = new Map<string, Attachment>();
  readonly #addresses = new AddressBook();
  /** Sandboxes whose addresses are reserved and not plugged yet, with the ranges that they are from. */
  readonly #unplugged = new Map<string, readonly Network[]>();
  /** The primary family's first; empty until they are known. */
  #ranges: readonly Network[] = [];
  /** 0: the kernel's default. */
  #mtu = 0;
  #loaded: Promise<void> | undefined;
  /** Changes of the filter tables are applied one after the other, always from the newest state. */
  #filtering: Promise<void> = Promise.resolve();
  readonly #unfiltered = new Set<4 | 6>();

  constructor(options: BridgeNetworkOptions) {
    this.#options = options;
    this.#ip = options.ipPath ?? 'ip';
    this.#nft = options.nftPath ?? 'nft';
    this.#nsenter = options.nsenterPath ?? 'nsenter';
    this.#bridge = options.bridge;
    this.#log = options.log;
    this.#files = new AttachmentFiles(options.stateDirectory, options.log);
  }

  get gateway(): string | undefined {
    return this.#ranges[0] === undefined ? undefined : gatewayText(this.#ranges[0]);
  }

  async setPodCidrs(cidrs: readonly string[]): Promise<void> {
    await this.#load();
    const next = cidrs.map((cidr) => {
      const range = parseNetwork(cidr);
      if (range === undefined) throw new RuntimeError('network', `pod CIDR: "${cidr}" is not an address range`);
      return range;
    });
    if (next.length === 0 || next.map(networkText).join() === this.#ranges.map(networkText).join()) return;
    await this.#setUpBridge(next);
    await Promise.all([
      setKernel('net/ipv4/ip_forward', '1', this.#log),
      // Pods reach each other through the gateway on purpose; the kernel would report a shorter way to them.
      setKernel('net/ipv4/conf/all/send_redirects', '0', this.#log),
      setKernel(`net/ipv4/conf/${this.#bridge}/send_redirects`, '0', this.#log),
      next.some(({ family }) => family === 6) ? forwardIpv6(this.#log) : undefined,
    ]);
    this.#ranges = next;
    await this.#applyFilter((family, error) => {
      this.#unfiltered.add(family);
      this.#log.warn(
        'no packet filter: pods reach other networks only where pod addresses are routed, and host ports are closed',
        { family, error: messageOf(error) },
      );
    });
    this.#log.info('pod network ready', {
      bridge: this.#bridge,
      podCIDRs: next.map(networkText).join(),
      gateways: next.map(gatewayText).join(),
    });
  }

  async #setUpBridge(ranges: readonly Network[]): Promise<void> {
    const [first] = ranges;
    if (first === undefined) return;
    // The address of its own keeps the bridge's from changing with its ports, which would break neighbor caches.
    const low = Number(gatewayOf(first) & 0xffffffffn);
    const mac = ['0a', '58', ...[24, 16, 8, 0].map((shift) => ((low >>> shift) & 255).toString(16).padStart(2, '0'))];
    await command(this.#ip, ['link', 'add', this.#bridge, 'address', mac.join(':'), 'type', 'bridge']).catch(
      (error: unknown) => {
        if (!/File exists/.test(messageOf(error))) throw error;
      },
    );
    const wanted = ranges.map((range) => `${gatewayText(range)}/${range.bits}`);
    const present = await command(this.#ip, ['-o', 'addr', 'show', 'dev', this.#bridge, 'scope', 'global']);
    const found = [...present.matchAll(/inet6? (\S+)/g)].map((match) => match[1] ?? '');
    const isPodGateway = (each: string): boolean => !each.endsWith('/32') && !each.endsWith('/128');
    await command(
      this.#ip,
      ['-batch', '-'],
      [
        ...found
          .filter((each) => !wanted.includes(each) && isPodGateway(each))
          .map((each) => `addr del ${each} dev ${this.#bridge}`),
        ...wanted.map((each) => `addr replace ${each} dev ${this.#bridge}${each.includes(':') ? ' nodad' : ''}`),
        `link set ${this.#bridge} up`,
        '',
      ].join('\n'),
    );
  }

  async attach(netnsPath: string, pod: PodEndpoint): Promise<{ ips: readonly string[] }> {
    const { ips } = await this.reserve(netnsPath, pod);
    const attachment = this.#attachments.get(pod.sandboxId);
    const ranges = this.#unplugged.get(pod.sandboxId);
    this.#unplugged.delete(pod.sandboxId);
    if (attachment === undefined || ranges === undefined) return { ips };
    try {
      await this.#plug(attachment, ranges, netnsPath);
    } catch (error) {
      await this.#forget(attachment).catch((again: unknown) =>
        this.#log.warn('pod network clean-up failed', { sandbox: pod.sandboxId, error: messageOf(again) }),
      );
      throw error;
    }
    this.#log.v(4, 'pod attached', { pod: `${pod.namespace}/${pod.name}`, ips: ips.join(), link: attachment.link });
    return { ips };
  }

  async reserve(netnsPath: string, pod: PodEndpoint): Promise<{ ips: readonly string[] }> {
    await this.#load();
    const inUse = this.#attachments.has(pod.sandboxId)
      ? undefined
      : await firstInUse(pod.portMappings, this.#options.serviceCidrs);
    const known = this.#attachments.get(pod.sandboxId);
    if (known !== undefined) return { ips: known.ips };
    const ranges = this.#ranges;
    const [primary] = ranges;
    if (primary === undefined) throw new RuntimeError('network', 'the node has no pod CIDR yet; pods wait for it');
    checkHostPorts(pod.portMappings, [...this.#attachments.values()], this.#options.reservedPorts());
    if (inUse !== undefined)
      throw new RuntimeError('network', `host port ${nameOf(inUse)} is in use by a process of this host`);
    if (pod.portMappings.length > 0 && this.#unfiltered.has(primary.family))
      throw new RuntimeError('network', 'host ports need nft, which does not work on this host');
    // Taken before the first await, so that two attaches never choose the same.
    const ips = this.#take(ranges, pod.uid);
    const attachment: Attachment = {
      sandboxId: pod.sandboxId,
      uid: pod.uid,
      ips,
      link: linkName(ips[0] ?? '', this.#bridge),
      netnsPath,
      portMappings: pod.portMappings,
    };
    this.#attachments.set(pod.sandboxId, attachment);
    this.#unplugged.set(pod.sandboxId, ranges);
    try {
      await this.#files.write(attachment);
    } catch (error) {
      this.#release(attachment);
      throw error;
    }
    return { ips };
  }

  /** An address of each range. */
  #take(ranges: readonly Network[], uid: string): string[] {
    const ips: string[] = [];
    for (const range of ranges) {
      const address = this.#addresses.take(range, uid);
      if (address === undefined) {
        for (const each of ips) this.#addresses.release(each);
        throw new RuntimeError('network', `no free address in ${networkText(range)}`);
      }
      ips.push(address);
    }
    return ips;
  }

  async #plug({ ips, link, portMappings }: Attachment, ranges: readonly Network[], netnsPath: string): Promise<void> {
    const sized = (name: string): string[] => (this.#mtu === 0 ? [] : [`link set ${name} mtu ${this.#mtu}`]);
    const pairs = ranges.map((range, index) => ({ ip: ips[index] ?? '', range }));
    const hasV6 = pairs.some(({ range }) => range.family === 6);
    await command(
      this.#ip,
      ['-batch', '-'],
      [
        `link add ${link} type veth peer name eth0 netns ${netnsPath}`,
        ...sized(link),
        `link set ${link} up`,
        ...(hasV6 ? [`addr add ${LINK_GATEWAY}/64 dev ${link} nodad`] : []),
        ...pairs.map(({ ip, range }) =>
          range.family === 4
            ? `route add ${ip}/32 dev ${link} src ${gatewayText(range)}`
            : `route add ${ip}/128 dev ${link} src ${gatewayText(range)}`,
        ),
        '',
      ].join('\n'),
    );
    await Promise.all([
      command(
        this.#nsenter,
        [`--net=${netnsPath}`, this.#ip, '-batch', '-'],
        [
          'link set lo up',
          ...pairs.map(({ ip, range }) =>
            range.family === 4 ? `addr add ${ip}/32 dev eth0` : `addr add ${ip}/128 dev eth0 nodad`,
          ),
          ...sized('eth0'),
          'link set eth0 up',
          ...pairs.flatMap(({ range }) =>
            range.family === 4
              ? [
                  `route add ${gatewayText(range)} dev eth0 scope link`,
                  `route add default via ${gatewayText(range)} dev eth0`,
                ]
              : [`route add default via ${LINK_GATEWAY} dev eth0`],
          ),
          '',
        ].join('\n'),
      ),
      portMappings.length > 0 ? this.#openHostPorts(link) : undefined,
    ]);
  }

  async setMtu(mtu: number): Promise<void> {
    if (mtu === this.#mtu) return;
    this.#mtu = mtu;
    await this.#load();
    const running = [...this.#attachments.values()];
    for (let from = 0; from < running.length; from += MTU_BATCH)
      await Promise.all(running.slice(from, from + MTU_BATCH).map((each) => this.#resize(each, mtu)));
  }

  /** Both ends; a sandbox of an earlier version keeps its own end, and learns the path's MTU. */
  async #resize({ link, netnsPath, sandboxId }: Attachment, mtu: number): Promise<void> {
    try {
      await command(this.#ip, ['link', 'set', link, 'mtu', String(mtu)]);
      if (netnsPath === undefined) return;
      await command(this.#nsenter, [`--net=${netnsPath}`, this.#ip, 'link', 'set', 'eth0', 'mtu', String(mtu)]);
    } catch (error) {
      this.#log.v(2, 'MTU of a pod not set', { sandbox: sandboxId, mtu, error: messageOf(error) });
    }
  }

  async detach(sandboxId: string): Promise<void> {
    await this.#load();
    const attachment = this.#attachments.get(sandboxId);
    if (attachment === undefined) return;
    await this.#forget(attachment);
    if (attachment.portMappings.length > 0) await this.#applyFilter();
  }

  async retain(alive: ReadonlySet<string>): Promise<void> {
    await this.#load();
    for (const attachment of [...this.#attachments.values()]) {
      if (alive.has(attachment.sandboxId)) continue;
      await this.#forget(attachment);
    }
    await this.#applyFilter();
  }

  async destroy(): Promise<void> {
    await this.#load();
    for (const attachment of [...this.#attachments.values()]) await this.#forget(attachment);
    await command(this.#ip, ['link', 'del', this.#bridge]).catch(() => {});
    for (const { family } of this.#ranges) {
      if (this.#unfiltered.has(family)) continue;
      const table = `table ${family === 4 ? 'ip' : 'ip6'} ${this.#options.nftTable}`;
      await command(this.#nft, ['-f', '-'], `add ${table}\ndelete ${table}\n`).catch(() => {});
    }
    this.#ranges = [];
  }

  #load(): Promise<void> {
    this.#loaded ??= (async () => {
      for (const attachment of await this.#files.load()) {
        this.#attachments.set(attachment.sandboxId, attachment);
        for (const ip of attachment.ips) this.#addresses.hold(ip);
      }
    })();
    return this.#loaded;
  }

  /** Without `onError` the first failure of a family rejects. */
  #applyFilter(onError?: (family: 4 | 6, error: unknown) => void): Promise<void> {
    const next = this.#filtering.then(async () => {
      for (const range of this.#ranges) {
        if (this.#unfiltered.has(range.family)) continue;
        const { nftTable: table, reservedPorts } = this.#options;
        const text = podTable({ ...this.#options, reservedPorts: reservedPorts(), table }, range, [
          ...this.#attachments.values(),
        ]);
        try {
          await command(this.#nft, ['-f', '-'], text);
        } catch (error) {
          if (onError === undefined) throw error;
          onError(range.family, error);
        }
      }
    });
    this.#filtering = next.catch(() => {});
    return next;
  }

  /** The link takes loopback addresses only once the rules stand that keep its pod from the host's loopback. */
  async #openHostPorts(link: string): Promise<void> {
    await this.#applyFilter();
    await setKernel(`net/ipv4/conf/${link}/route_localnet`, '1', this.#log);
  }

  async #forget(attachment: Attachment): Promise<void> {
    await command(this.#ip, ['link', 'del', attachment.link]).catch((error: unknown) => {
      // The namespace that held the other end may have taken the pair with it.
      if (!/Cannot find device/.test(messageOf(error))) throw error;
    });
    await this.#files.remove(attachment.sandboxId);
    this.#release(attachment);
  }

  #release({ sandboxId, ips, uid }: Attachment): void {
    this.#attachments.delete(sandboxId);
    this.#unplugged.delete(sandboxId);
    for (const ip of ips) this.#addresses.release(ip, uid);
  }
}

const nameOf = ({ hostPort, protocol }: PortMapping): string => `${hostPort}/${protocol}`;

/** Throws RuntimeErrors for what is no host port to have. */
function checkHostPorts(
  wanted: readonly PortMapping[],
  others: readonly Attachment[],
  reservedPorts: readonly ReservedPort[],
): void {
  for (const mapping of wanted) {
    if (mapping.hostIp !== '' && isIP(mapping.hostIp) === 0)
      throw new RuntimeError('network', `host port address "${mapping.hostIp}" is not an IP address`);
    if (isReserved(mapping, reservedPorts))
      throw new RuntimeError('network', `host port ${nameOf(mapping)} is a port of this host itself`);
    if (others.some(({ portMappings }) => portMappings.some((each) => collides(each, mapping))))
      throw new RuntimeError('network', `host port ${nameOf(mapping)} is taken by another pod`);
  }
}

async function firstInUse(
  mappings: readonly PortMapping[],
  serviceCidrs: readonly string[],
): Promise<PortMapping | undefined> {
  for (const mapping of mappings) if (await isInUse(mapping, serviceCidrs)) return mapping;
  return undefined;
}

/**
 * Unique per address and bridge, and recognisable in `ip link`: `ve0a800005` and the bridge's check
 * letters.
 */
function linkName(address: string, bridge: string): string {
  let check = 0;
  for (const character of bridge) check = (check * 31 + character.charCodeAt(0)) & 0xfff;
  const value = addressValue(address)?.value ?? 0n;
  // Of an IPv6 address: the pod's number, and the part of the prefix that differs between nodes.
  const low = Number((value ^ (value >> 64n)) & 0xffffffffn);
  return `ve${low.toString(16).padStart(8, '0')}${check.toString(16).padStart(3, '0')}`;
}
