/**
 * The embedded pod network of one node: a bridge, a veth pair per pod, host-local addresses from the node's pod range.
 *
 * A pod's address is a /32 whose only neighbor is the gateway, and the host has a route to each pod's link: traffic
 * between two pods of one node is routed by the host and never switched. Service addresses therefore work between them
 * with or without br_netfilter (replies always pass the host's connection tracking), and one set of filter rules
 * handles all pod traffic. The bridge has the gateway's address and connects any other member of the pod network
 * (docs/decisions/0004).
 */
import { isIP } from 'node:net';
import type { ReservedPort } from '../../../../api/kinds/nodes/nodes/host-ports.ts';
import { type Network, networkText, parseNetwork } from '../../../../base/addresses/networks.ts';
import { ignore, messageOf } from '../../../../base/errors.ts';
import type { Log } from '../../../../base/log.ts';
import type { PodEndpoint, PodNetwork } from '../../../../runtime/oci/port.ts';
import { RuntimeError } from '../../../../runtime/port.ts';
import { command } from '../command.ts';
import { FilterTables } from '../filter/filter-tables.ts';
import { createForwarding, type Forwarding } from '../filter/forwarding.ts';
import { checkHostPorts, firstInUse, nameOf } from '../filter/host-ports.ts';
import { forwardIpv6, setKernel } from '../kernel-setting.ts';
import { AddressBook } from './addresses.ts';
import { type Attachment, AttachmentFiles } from './attachments.ts';
import { desiredLink, gatewayText, guardLink, LINK_GATEWAY, setUpBridge } from './bridge-link.ts';
import { linkName, probeLinks } from './link-name.ts';
import { linkedAddresses, type ObservedNetwork, observeNetwork, POD_LINK_GROUP, repairs } from './restored-state.ts';

export interface BridgeNetworkOptions {
  /** Directory of the records of attached sandboxes, which survive restarts of the host process. */
  readonly stateDirectory: string;
  /** Name of the bridge; up to 15 characters. */
  readonly bridge: string;
  /** Pod ranges of the whole cluster, one per family. Traffic to them is never masqueraded. */
  readonly clusterCidrs: readonly string[];
  readonly nftTable: string;
  /** Service ranges. Host ports never redirect traffic to these ranges. */
  readonly serviceCidrs: readonly string[];
  /** Ports on which the host itself listens. The function is called whenever rules are written or a pod is attached. */
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
  /** Sets the MTU of pods' links, including those of running pods. Never rejects. */
  setMtu(mtu: number): Promise<void>;
  /**
   * Compares links, addresses, routes and kernel settings with the desired state and restores missing ones. With
   * `filter`, the tables of the packet filter are compared too. Never rejects.
   */
  reconcile(options: { readonly filter: boolean }): Promise<void>;
  /** The fault that the last `reconcile` could not repair. */
  readonly problem: string | undefined;
  /** The fault that prevents forwarding of pod packets; undefined if none is found. Never rejects. */
  forwarding(): Promise<string | undefined>;
  /** Whether a pod of this host has the address. */
  holds(address: string): boolean;
  /** Removes the bridge, all pod links and the filter tables. */
  destroy(): Promise<void>;
}

/** Number of concurrent processes that set the MTU of running pods. */
const MTU_BATCH = 8;

export function createBridgeNetwork(options: BridgeNetworkOptions): BridgeNetwork {
  return new NftBridgeNetwork(options);
}

class NftBridgeNetwork implements BridgeNetwork {
  readonly #options: BridgeNetworkOptions;
  readonly #ip: string;
  readonly #nsenter: string;
  readonly #bridge: string;
  readonly #log: Log;
  readonly #files: AttachmentFiles;
  readonly #attachments = new Map<string, Attachment>();
  readonly #addresses = new AddressBook();
  /** Sandboxes with reserved addresses that are not attached yet, with the ranges of these addresses. */
  readonly #unplugged = new Map<string, readonly Network[]>();
  /** Pod ranges of this node, the primary family's range first; empty until they are known. */
  #ranges: readonly Network[] = [];
  /** MTU of the pods' links; 0 means the kernel's default. */
  #mtu = 0;
  #loaded: Promise<void> | undefined;
  /** Sandboxes whose links exist. Only their links are repaired. */
  readonly #plugged = new Set<string>();
  readonly #repairing = new Map<string, Promise<void>>();
  readonly #filter: FilterTables;
  readonly #forwarding: Forwarding;
  #reconciling: Promise<void> | undefined;
  #problem: string | undefined;

  constructor(options: BridgeNetworkOptions) {
    this.#options = options;
    this.#ip = options.ipPath ?? 'ip';
    const nft = options.nftPath ?? 'nft';
    this.#nsenter = options.nsenterPath ?? 'nsenter';
    this.#bridge = options.bridge;
    this.#log = options.log;
    this.#forwarding = createForwarding({
      ip: this.#ip,
      nft,
      clusterCidrs: options.clusterCidrs,
      links: probeLinks(options.bridge),
      table: `${options.nftTable}-probe`,
      setKernel: (name, value) => setKernel(name, value, options.log),
    });
    this.#filter = new FilterTables({
      nft,
      table: options.nftTable,
      clusterCidrs: options.clusterCidrs,
      serviceCidrs: options.serviceCidrs,
      reservedPorts: options.reservedPorts,
      state: () => ({ ranges: this.#ranges, pods: [...this.#attachments.values()] }),
      log: options.log,
    });
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
    await setUpBridge(this.#ip, this.#bridge, next);
    await this.#setKernel(next);
    this.#ranges = next;
    for (const { sandboxId, link, ips } of this.#attachments.values())
      if (this.#plugged.has(sandboxId)) await guardLink(link, ips, this.#log);
    await this.#filter.applySupported();
    this.#log.info('pod network ready', {
      bridge: this.#bridge,
      podCIDRs: next.map(networkText).join(),
      gateways: next.map(gatewayText).join(),
    });
  }

  async #setKernel(ranges: readonly Network[]): Promise<void> {
    await Promise.all([
      setKernel('net/ipv4/ip_forward', '1', this.#log),
      // Pods reach each other through the gateway on purpose, so the kernel must not send redirects.
      setKernel('net/ipv4/conf/all/send_redirects', '0', this.#log),
      setKernel(`net/ipv4/conf/${this.#bridge}/send_redirects`, '0', this.#log),
      ranges.some(({ family }) => family === 6) ? forwardIpv6(this.#log) : undefined,
    ]);
  }

  async attach(netnsPath: string, pod: PodEndpoint): Promise<{ ips: readonly string[] }> {
    const { ips } = await this.reserve(netnsPath, pod);
    const attachment = this.#attachments.get(pod.sandboxId);
    const ranges = this.#unplugged.get(pod.sandboxId);
    this.#unplugged.delete(pod.sandboxId);
    if (attachment === undefined || ranges === undefined) return { ips };
    try {
      await this.#plug(attachment, ranges, netnsPath);
      this.#plugged.add(pod.sandboxId);
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
    if (pod.portMappings.length > 0 && !this.#filter.isSupported(primary.family))
      throw new RuntimeError('network', 'host ports need nft, which does not work on this host');
    // The addresses are taken before the first await, so that two concurrent attaches never choose the same address.
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

  /** Takes one address from each range. */
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
        `link set ${link} group ${POD_LINK_GROUP}`,
        ...sized(link),
        `link set ${link} up`,
        ...(hasV6 ? [`addr add ${LINK_GATEWAY}/64 dev ${link} nodad`] : []),
        ...pairs.map(({ ip, range }) => `route add ${ip} dev ${link} src ${gatewayText(range)}`),
        '',
      ].join('\n'),
    );
    await Promise.all([
      guardLink(link, ips, this.#log),
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

  get problem(): string | undefined {
    return this.#problem;
  }

  async forwarding(): Promise<string | undefined> {
    try {
      return await this.#forwarding.check(this.#ranges, (range) => this.#addresses.reserve(range));
    } catch (error) {
      this.#log.v(2, 'forwarding of pod packets not checked', { error: messageOf(error) });
      return undefined;
    }
  }

  holds(address: string): boolean {
    return [...this.#attachments.values()].some(({ ips }) => ips.includes(address));
  }

  reconcile({ filter }: { readonly filter: boolean }): Promise<void> {
    this.#reconciling ??= this.#repairAll(filter)
      .then(
        (repaired) => {
          this.#problem = undefined;
          if (repaired.length > 0) this.#log.warn('pod network repaired', { repaired: repaired.join('; ') });
        },
        (error: unknown) => {
          const problem = messageOf(error);
          if (problem !== this.#problem) this.#log.error('pod network not repaired', { error: problem });
          this.#problem = problem;
        },
      )
      .finally(() => {
        this.#reconciling = undefined;
      });
    return this.#reconciling;
  }

  /** Restores missing state. Resolves with the changes that were made. */
  async #repairAll(filter: boolean): Promise<string[]> {
    const ranges = this.#ranges;
    if (ranges.length === 0) return [];
    await this.#setKernel(ranges);
    const observed = await observeNetwork(
      this.#ip,
      ranges.map(({ family }) => family),
    );
    const done: string[] = [];
    const bridge = {
      name: this.#bridge,
      addresses: ranges.map((range) => `${gatewayText(range)}/${range.bits}`),
      routes: ranges.map((range) => ({
        destination: networkText(range),
        options: range.family === 4 ? `proto kernel scope link src ${gatewayText(range)}` : 'proto kernel metric 256',
      })),
    };
    const lines = repairs(bridge, observed);
    if (lines === undefined) await setUpBridge(this.#ip, this.#bridge, ranges);
    if (lines === undefined) done.push(`link ${this.#bridge} added`);
    else if (lines.length > 0) done.push(...(await this.#runLines(lines)));
    for (const attachment of [...this.#attachments.values()]) done.push(...(await this.#repair(attachment, observed)));
    for (const { family } of filter ? ranges : []) {
      if (!(await this.#filter.isChanged(family))) continue;
      await this.#filter.apply();
      done.push(`table ${this.#options.nftTable} applied`);
    }
    return done;
  }

  async #repair(attachment: Attachment, observed: ObservedNetwork): Promise<readonly string[]> {
    const { sandboxId, link, ips, netnsPath } = attachment;
    if (!this.#plugged.has(sandboxId)) return [];
    const ranges = ips.flatMap((ip) => this.#ranges.find((range) => range.family === isIP(ip)) ?? []);
    const lines = repairs(desiredLink(link, ips, ranges), observed);
    if (lines?.length === 0) return [];
    let done: readonly string[] = [];
    const work = (async () => {
      if (lines !== undefined) done = await this.#runLines(lines);
      else if (netnsPath !== undefined && ranges.length === ips.length) {
        await this.#plug(attachment, ranges, netnsPath);
        done = [`link ${link} added`];
      }
    })();
    this.#repairing.set(sandboxId, work);
    await work.finally(() => this.#repairing.delete(sandboxId));
    return done;
  }

  async #runLines(lines: readonly string[]): Promise<readonly string[]> {
    await command(this.#ip, ['-batch', '-'], `${lines.join('\n')}\n`);
    return lines;
  }

  async setMtu(mtu: number): Promise<void> {
    if (mtu === this.#mtu) return;
    this.#mtu = mtu;
    await this.#load();
    const running = [...this.#attachments.values()];
    for (let from = 0; from < running.length; from += MTU_BATCH)
      await Promise.all(running.slice(from, from + MTU_BATCH).map((each) => this.#resize(each, mtu)));
  }

  /** Sets the MTU of both ends. A sandbox of an earlier version keeps its end's MTU and uses path MTU discovery. */
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
    // The record of a sandbox that is not known may be unreadable.
    if (attachment === undefined) return this.#files.remove(sandboxId);
    await this.#forget(attachment);
    if (attachment.portMappings.length > 0) await this.#filter.apply();
  }

  async retain(alive: ReadonlySet<string>): Promise<void> {
    await this.#load();
    for (const attachment of [...this.#attachments.values()]) {
      if (alive.has(attachment.sandboxId)) continue;
      await this.#forget(attachment);
    }
    await this.#files.removeUnreadable(alive);
    await this.#filter.apply();
  }

  async destroy(): Promise<void> {
    await this.#load();
    const ranges = this.#ranges;
    this.#ranges = [];
    await this.#reconciling;
    await this.#forwarding
      .remove()
      .catch((error: unknown) => this.#log.v(2, 'forwarding rules not removed', { error: messageOf(error) }));
    for (const attachment of [...this.#attachments.values()]) await this.#forget(attachment);
    await this.#files.removeUnreadable(new Set());
    await command(this.#ip, ['link', 'del', this.#bridge]).catch((error: unknown) =>
      this.#log.v(2, 'bridge not removed', { bridge: this.#bridge, error: messageOf(error) }),
    );
    await this.#filter.remove(ranges.map(({ family }) => family));
  }

  #load(): Promise<void> {
    this.#loaded ??= (async () => {
      for (const attachment of await this.#files.load()) {
        this.#attachments.set(attachment.sandboxId, attachment);
        this.#plugged.add(attachment.sandboxId);
        for (const ip of attachment.ips) this.#addresses.hold(ip);
      }
      // The addresses of pods whose records cannot be read stay reserved until the next start.
      if (this.#files.hasUnreadable) for (const ip of await linkedAddresses(this.#ip)) this.#addresses.hold(ip);
    })().catch((error: unknown) => {
      this.#loaded = undefined;
      throw error;
    });
    return this.#loaded;
  }

  /**
   * Permits loopback addresses on the link. The rules that protect the host's loopback listeners from the pod are
   * applied first.
   */
  async #openHostPorts(link: string): Promise<void> {
    await this.#filter.apply();
    await setKernel(`net/ipv4/conf/${link}/route_localnet`, '1', this.#log);
  }

  async #forget(attachment: Attachment): Promise<void> {
    this.#plugged.delete(attachment.sandboxId);
    await this.#repairing.get(attachment.sandboxId)?.catch(ignore('the repair reports its own errors'));
    await command(this.#ip, ['link', 'del', attachment.link]).catch((error: unknown) => {
      // The pair is already deleted when the network namespace of its other end has been removed.
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
