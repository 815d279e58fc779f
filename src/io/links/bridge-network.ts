/**
 * The embedded pod network of one node: a bridge, a veth pair per pod, host-local addresses from the node's pod range.
 *
 * A pod's address is a /32 whose only neighbour is the gateway, and the host has a route to each pod's link: traffic
 * between two pods of one node is routed by the host, never switched. So service addresses work between them whether or
 * not br_netfilter is loaded (answers pass the host's connection tracking in any case), and one set of filter rules
 * sees all pod traffic. The bridge holds the gateway's address and whatever else joins the pods' network
 * (docs/decisions/0004).
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
  return new NftBridgeNetwork(options);
}

class NftBridgeNetwork implements BridgeNetwork {
  readonly #options: BridgeNetworkOptions;
  readonly #ip: string;
  readonly #nft: string;
  readonly #nsenter: string;
  readonly #bridge: string;
  readonly #log: Log;
  readonly #attachments = new Map<string, Attachment>();
  readonly #taken = new Set<number>();
  #range: Range | undefined;
  #last = 0;
  #loaded: Promise<void> | undefined;
  /** Changes of the filter table are applied one after the other, always from the newest state. */
  #filtering: Promise<void> = Promise.resolve();
  #filterWorks = true;

  constructor(options: BridgeNetworkOptions) {
    this.#options = options;
    this.#ip = options.ipPath ?? 'ip';
    this.#nft = options.nftPath ?? 'nft';
    this.#nsenter = options.nsenterPath ?? 'nsenter';
    this.#bridge = options.bridge;
    this.#log = options.log;
  }

  get gateway(): string | undefined {
    return this.#range === undefined ? undefined : toText(gatewayOf(this.#range));
  }

  async setPodCidr(cidr: string): Promise<void> {
    await this.#load();
    let next: Range;
    try {
      next = parseRange(cidr);
    } catch (error) {
      throw new RuntimeError('network', `pod CIDR: ${messageOf(error)}`);
    }
    if (this.#range !== undefined && this.#range.base === next.base && this.#range.bits === next.bits) return;
    const gateway = `${toText(gatewayOf(next))}/${next.bits}`;
    // The address of its own keeps the bridge's from changing with its ports, which would break neighbour caches.
    const mac = `0a:58:${toText(gatewayOf(next))
      .split('.')
      .map((part) => Number(part).toString(16).padStart(2, '0'))
      .join(':')}`;
    await command(this.#ip, ['link', 'add', this.#bridge, 'address', mac, 'type', 'bridge']).catch((error: unknown) => {
      if (!/File exists/.test(messageOf(error))) throw error;
    });
    const present = await command(this.#ip, ['-o', '-4', 'addr', 'show', 'dev', this.#bridge]);
    const stale = [...present.matchAll(/inet (\S+)/g)]
      .map((match) => match[1] ?? '')
      .filter((each) => each !== gateway);
    await command(
      this.#ip,
      ['-batch', '-'],
      [
        ...stale.map((each) => `addr del ${each} dev ${this.#bridge}`),
        `addr replace ${gateway} dev ${this.#bridge}`,
        ...(this.#options.mtu === undefined || this.#options.mtu === 0
          ? []
          : [`link set ${this.#bridge} mtu ${this.#options.mtu}`]),
        `link set ${this.#bridge} up`,
        '',
      ].join('\n'),
    );
    await Promise.all([
      sysctl('net/ipv4/ip_forward', '1', this.#log),
      // Pods reach each other through the gateway on purpose; the kernel would tell them of a shorter way.
      sysctl('net/ipv4/conf/all/send_redirects', '0', this.#log),
      sysctl(`net/ipv4/conf/${this.#bridge}/send_redirects`, '0', this.#log),
    ]);
    this.#range = next;
    try {
      await this.#applyFilter();
    } catch (error) {
      this.#filterWorks = false;
      this.#log.warn(
        'no packet filter: pods reach other hosts only where pod addresses are routed, and host ports are closed',
        {
          error: messageOf(error),
        },
      );
    }
    this.#log.info('pod network ready', { bridge: this.#bridge, podCIDR: cidr, gateway: toText(gatewayOf(next)) });
  }

  async attach(netnsPath: string, pod: PodEndpoint): Promise<{ ips: string[] }> {
    await this.#load();
    const inUse = this.#attachments.has(pod.sandboxId)
      ? undefined
      : await firstInUse(pod.portMappings, this.#options.serviceCidr);
    const known = this.#attachments.get(pod.sandboxId);
    if (known !== undefined) return { ips: [known.ip] };
    if (this.#range === undefined) throw new RuntimeError('network', 'the node has no pod CIDR yet; pods wait for it');
    checkHostPorts(pod.portMappings, [...this.#attachments.values()], this.#options.reservedPorts());
    if (inUse !== undefined)
      throw new RuntimeError('network', `host port ${nameOf(inUse)} is in use by a process of this host`);
    if (pod.portMappings.length > 0 && !this.#filterWorks)
      throw new RuntimeError('network', 'host ports need nft, which does not work on this host');
    const address = nextFree(this.#range, this.#last, (each) => this.#taken.has(each));
    if (address === undefined)
      throw new RuntimeError('network', `no free address in ${toText(this.#range.base)}/${this.#range.bits}`);
    // Taken before the first await, so that two attaches never choose the same.
    this.#taken.add(address);
    this.#last = address;
    const attachment: Attachment = {
      sandboxId: pod.sandboxId,
      ip: toText(address),
      link: linkName(address, this.#bridge),
      portMappings: pod.portMappings,
    };
    this.#attachments.set(pod.sandboxId, attachment);
    const gateway = toText(gatewayOf(this.#range));
    try {
      await writeRecord(this.#recordPath(pod.sandboxId), attachment);
      await command(
        this.#ip,
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
          this.#nsenter,
          [`--net=${netnsPath}`, this.#ip, '-batch', '-'],
          [
            'link set lo up',
            `addr add ${attachment.ip}/32 dev eth0`,
            ...(this.#options.mtu === undefined || this.#options.mtu === 0
              ? []
              : [`link set eth0 mtu ${this.#options.mtu}`]),
            'link set eth0 up',
            `route add ${gateway} dev eth0 scope link`,
            `route add default via ${gateway} dev eth0`,
            '',
          ].join('\n'),
        ),
        pod.portMappings.length > 0 ? this.#openHostPorts(attachment.link) : undefined,
      ]);
    } catch (error) {
      await this.#forget(attachment).catch((again: unknown) =>
        this.#log.warn('pod network clean-up failed', { sandbox: pod.sandboxId, error: messageOf(again) }),
      );
      throw error;
    }
    this.#log.v(4, 'pod attached', { pod: `${pod.namespace}/${pod.name}`, ip: attachment.ip, link: attachment.link });
    return { ips: [attachment.ip] };
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
    if (this.#filterWorks && this.#range !== undefined)
      await command(
        this.#nft,
        ['-f', '-'],
        `add table ip ${this.#options.nftTable}\ndelete table ip ${this.#options.nftTable}\n`,
      ).catch(() => {});
    this.#range = undefined;
  }

  #recordPath(sandboxId: string): string {
    return join(this.#options.stateDirectory, `${sandboxId}.json`);
  }

  #load(): Promise<void> {
    this.#loaded ??= (async () => {
      await mkdir(this.#options.stateDirectory, { recursive: true, mode: 0o700 });
      for (const name of await readdir(this.#options.stateDirectory)) {
        if (!name.endsWith('.json')) continue;
        try {
          const record = JSON.parse(await readFile(join(this.#options.stateDirectory, name), 'utf8')) as Attachment;
          if (!isIPv4(record.ip) || typeof record.link !== 'string') throw new Error('not a pod network record');
          this.#attachments.set(record.sandboxId, record);
          this.#taken.add(toNumber(record.ip));
          this.#last = Math.max(this.#last, toNumber(record.ip));
        } catch (error) {
          // Half-written at a power cut: the sandbox it was for never came to be.
          this.#log.warn('dropping an unreadable pod network record', { name, error: messageOf(error) });
          await rm(join(this.#options.stateDirectory, name), { force: true });
        }
      }
    })();
    return this.#loaded;
  }

  #applyFilter(): Promise<void> {
    const next = this.#filtering.then(async () => {
      if (this.#range === undefined || !this.#filterWorks) return;
      await command(
        this.#nft,
        ['-f', '-'],
        podTable(
          { ...this.#options, reservedPorts: this.#options.reservedPorts(), table: this.#options.nftTable },
          this.#range,
          [...this.#attachments.values()],
        ),
      );
    });
    this.#filtering = next.catch(() => {});
    return next;
  }

  /** The link takes loopback addresses only once the rules stand that keep its pod from the host's loopback. */
  async #openHostPorts(link: string): Promise<void> {
    await this.#applyFilter();
    await sysctl(`net/ipv4/conf/${link}/route_localnet`, '1', this.#log);
  }

  async #forget(attachment: Attachment): Promise<void> {
    await command(this.#ip, ['link', 'del', attachment.link]).catch((error: unknown) => {
      // The namespace that held the other end may have taken the pair with it.
      if (!/Cannot find device/.test(messageOf(error))) throw error;
    });
    await rm(this.#recordPath(attachment.sandboxId), { force: true });
    this.#attachments.delete(attachment.sandboxId);
    this.#taken.delete(toNumber(attachment.ip));
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
    if (mapping.hostIp !== '' && !isIPv4(mapping.hostIp))
      throw new RuntimeError('network', `host port address "${mapping.hostIp}" is not an IPv4 address`);
    if (isReserved(mapping, reservedPorts))
      throw new RuntimeError('network', `host port ${nameOf(mapping)} is a port of this host itself`);
    if (others.some(({ portMappings }) => portMappings.some((each) => collides(each, mapping))))
      throw new RuntimeError('network', `host port ${nameOf(mapping)} is taken by another pod`);
  }
}

async function firstInUse(mappings: readonly PortMapping[], serviceCidr: string): Promise<PortMapping | undefined> {
  for (const mapping of mappings) if (await isInUse(mapping, serviceCidr)) return mapping;
  return undefined;
}

/**
 * Unique per address and bridge, and recognisable in `ip link`: `ve0a800005` and the bridge's check
 * letters.
 */
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
