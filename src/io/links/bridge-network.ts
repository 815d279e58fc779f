/**
 * The embedded pod network of one node: a Linux bridge, a veth pair for each pod, addresses from the node's pod range.
 *
 * Pods get their address as a /32 with the bridge as the only way out, even to neighbours on the same bridge. So everything a pod
 * sends passes the host's routing and connection tracking, and the answers to traffic that a service rule redirected come back
 * through the same rules, without the bridge netfilter module.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { isIPv4 } from 'node:net';
import { join } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { type PortMapping, RuntimeError } from '../../core/podplan/port.ts';
import type { PodEndpoint, PodNetwork } from '../oci/port.ts';
import { type AddressRange, macFor, nextFree, parseRange, toNumber, toText } from './address-range.ts';
import { createNetCommands } from './command.ts';
import { addPorts, deletePorts, hostPortKey, hostPorts, TABLE, tableRuleset } from './ruleset.ts';

export interface BridgeNetworkDeps {
  /** Directory for the records of attachments; survives restarts of the host process. */
  readonly stateDir: string;
  readonly log: Log;
  /** Default `hyper0`; at most 15 characters. */
  readonly bridge?: string;
  /** Default 1500. */
  readonly mtu?: number;
  /** Destinations that see pods' own addresses: all pods' range, for instance. Everything else sees the host's. */
  readonly clusterCidrs?: readonly string[];
  /** File of the network namespace that stands for the host; default the process's own. */
  readonly hostNetns?: string;
}

export interface BridgeNetwork extends PodNetwork {
  /** Removes every link, rule and record of this network. */
  destroy(): Promise<void>;
}

interface Attachment {
  readonly sandboxId: string;
  readonly address: string;
  readonly portMappings: readonly PortMapping[];
}

export function createBridgeNetwork(deps: BridgeNetworkDeps): BridgeNetwork {
  const log = deps.log.named('links');
  const bridge = deps.bridge ?? 'hyper0';
  const mtu = deps.mtu ?? 1500;
  const commands = createNetCommands(deps.hostNetns);
  const attachments = new Map<string, Attachment>();
  const cidrFile = join(deps.stateDir, 'pod-cidr');
  const attachmentDir = join(deps.stateDir, 'attachments');
  let range: AddressRange | undefined;
  let last = 0;
  let filtering = false;
  let loading: Promise<void> | undefined;
  /** Changes of addresses and rules go one after another; the slow part of an attach (its links) does not. */
  let queue: Promise<unknown> = Promise.resolve();

  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = queue.then(work, work);
    queue = result.catch(() => {});
    return result;
  };

  const linkName = (sandboxId: string): string => `hv${sandboxId.slice(0, 12)}`;
  const recordFile = (sandboxId: string): string => join(attachmentDir, `${sandboxId}.json`);

  /** Reads what an earlier process left, once. */
  function loaded(): Promise<void> {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  }

  async function load(): Promise<void> {
    await mkdir(attachmentDir, { recursive: true, mode: 0o700 });
    for (const name of await readdir(attachmentDir)) {
      const attachment = await readAttachment(join(attachmentDir, name));
      if (attachment === undefined) await rm(join(attachmentDir, name), { force: true });
      else attachments.set(attachment.sandboxId, attachment);
    }
    const cidr = await readFile(cidrFile, 'utf8').catch(() => undefined);
    if (cidr !== undefined) await useRange(parseRange(cidr.trim()));
  }

  async function useRange(next: AddressRange): Promise<void> {
    await ensureBridge(next);
    range = next;
    last = next.first - 1;
    for (const { address } of attachments.values()) last = Math.max(last, toNumber(address) ?? 0);
    await rewriteTable();
  }

  async function ensureBridge(next: AddressRange): Promise<void> {
    const links = await commands.ipJson(['link', 'show', 'type', 'bridge']);
    const exists = Array.isArray(links) && links.some((link: { ifname?: unknown }) => link.ifname === bridge);
    const mac = macFor(toNumber(next.gateway) ?? 0);
    await commands.ip([
      // A fixed address: the kernel's choice would change as pods come and go, and pods would lose their way out.
      ...(exists ? [] : [`link add ${bridge} address ${mac} mtu ${mtu} type bridge forward_delay 0`]),
      `addr replace ${next.gateway}/${next.prefix} dev ${bridge}`,
      `link set ${bridge} up`,
    ]);
    const settings = [
      ['net/ipv4/ip_forward', '1'],
      // Pods send to neighbours through us on purpose; telling them of the direct way would undo it.
      ['net/ipv4/conf/all/send_redirects', '0'],
      [`net/ipv4/conf/${bridge}/send_redirects`, '0'],
      // Host ports answer on 127.0.0.1 as well; the table keeps pods from reaching the host's loopback by it.
      [`net/ipv4/conf/${bridge}/route_localnet`, '1'],
    ] as const;
    for (const [name, value] of settings) {
      await commands
        .sysctl(name, value)
        .catch((error: unknown) => log.warn('sysctl refused', { name, error: messageOf(error) }));
    }
  }

  async function rewriteTable(): Promise<void> {
    if (range === undefined) return;
    const ports = [...attachments.values()].flatMap(({ portMappings, address }) => hostPorts(portMappings, address));
    try {
      await commands.nft(tableRuleset(bridge, range, deps.clusterCidrs ?? [], ports));
      filtering = true;
    } catch (error) {
      filtering = false;
      log.warn('pods reach only this cluster, and host ports do not work: the nft table was refused', {
        error: messageOf(error),
      });
    }
  }

  async function save(attachment: Attachment): Promise<void> {
    const temporary = join(deps.stateDir, `.${attachment.sandboxId}`);
    await writeFile(temporary, JSON.stringify(attachment), { mode: 0o600 });
    await rename(temporary, recordFile(attachment.sandboxId));
    attachments.set(attachment.sandboxId, attachment);
  }

  /** Takes an address and writes that down before anything exists that could use it. */
  async function reserve(pod: PodEndpoint): Promise<Attachment> {
    if (range === undefined) throw new RuntimeError('network', 'the node has no pod CIDR yet');
    const wanted = hostPorts(pod.portMappings, '0.0.0.0');
    for (const { hostIp } of wanted) {
      if (hostIp !== '' && !isIPv4(hostIp))
        throw new RuntimeError('network', `host IP ${JSON.stringify(hostIp)} is not an IPv4 address`);
    }
    if (wanted.length > 0 && !filtering)
      throw new RuntimeError('network', 'host ports need nft; install the package nftables');
    const keys = new Set(wanted.map(hostPortKey));
    for (const other of attachments.values()) {
      for (const port of hostPorts(other.portMappings, other.address)) {
        if (keys.has(hostPortKey(port)))
          throw new RuntimeError('network', `host port ${hostPortKey(port)} is taken by another pod`);
      }
    }
    const taken = new Set([...attachments.values()].flatMap(({ address }) => toNumber(address) ?? []));
    const address = nextFree(range, last, taken);
    if (address === undefined) throw new RuntimeError('network', `all addresses of ${range.cidr} are taken`);
    last = address;
    const attachment = { sandboxId: pod.sandboxId, address: toText(address), portMappings: pod.portMappings };
    await save(attachment);
    return attachment;
  }

  async function connect(netns: string, attachment: Attachment, gateway: string): Promise<void> {
    const link = linkName(attachment.sandboxId);
    const mac = macFor(toNumber(attachment.address) ?? 0);
    await commands.ip([
      `link add ${link} mtu ${mtu} type veth peer name eth0 address ${mac} mtu ${mtu} netns ${netns}`,
      `link set ${link} master ${bridge} up`,
      `link set ${link} type bridge_slave hairpin on`,
    ]);
    await commands.ip(
      [
        'link set lo up',
        `addr add ${attachment.address}/32 dev eth0`,
        'link set eth0 up',
        `route add ${gateway} dev eth0 scope link`,
        `route add default via ${gateway} dev eth0`,
      ],
      netns,
    );
  }

  async function release(sandboxId: string): Promise<void> {
    const attachment = attachments.get(sandboxId);
    if (attachment === undefined) return;
    const ports = hostPorts(attachment.portMappings, attachment.address);
    if (ports.length > 0 && filtering) {
      await commands
        .nft(deletePorts(ports))
        .catch((error: unknown) => log.v(2, 'host ports', { error: messageOf(error) }));
    }
    await commands.ip([`link del ${linkName(sandboxId)}`]).catch((error: unknown) => {
      // The link goes by itself with the last user of the pod's namespace.
      if (!messageOf(error).includes('Cannot find device')) throw error;
    });
    await rm(recordFile(sandboxId), { force: true });
    attachments.delete(sandboxId);
  }

  return {
    async attach(netns, pod) {
      if (!/^[0-9a-f]{12,}$/.test(pod.sandboxId))
        throw new RuntimeError('network', `sandbox id ${JSON.stringify(pod.sandboxId)} is not hexadecimal`);
      if (/\s/.test(netns)) throw new RuntimeError('network', `the path ${JSON.stringify(netns)} has white space`);
      await loaded();
      const { attachment, gateway, fresh } = await inTurn(async () => {
        const known = attachments.get(pod.sandboxId);
        return { attachment: known ?? (await reserve(pod)), gateway: range?.gateway ?? '', fresh: known === undefined };
      });
      if (!fresh) return { ips: [attachment.address] };
      try {
        await connect(netns, attachment, gateway);
        const ports = hostPorts(pod.portMappings, attachment.address);
        if (ports.length > 0) await inTurn(() => commands.nft(addPorts(ports)));
        return { ips: [attachment.address] };
      } catch (error) {
        await inTurn(() => release(pod.sandboxId));
        throw error;
      }
    },

    async detach(sandboxId) {
      await loaded();
      await inTurn(() => release(sandboxId));
    },

    async retain(alive) {
      await loaded();
      await inTurn(async () => {
        for (const sandboxId of [...attachments.keys()]) if (!alive.has(sandboxId)) await release(sandboxId);
      });
    },

    async setPodCidr(cidr) {
      const next = parseRange(cidr);
      await loaded();
      await inTurn(async () => {
        if (range?.cidr === next.cidr) return;
        await useRange(next);
        await writeFile(`${cidrFile}.new`, next.cidr, { mode: 0o600 });
        await rename(`${cidrFile}.new`, cidrFile);
      });
    },

    async destroy() {
      await loaded().catch(() => {});
      await inTurn(async () => {
        for (const sandboxId of [...attachments.keys()]) await release(sandboxId);
        await commands.nft(`table ip ${TABLE}\ndelete table ip ${TABLE}\n`).catch(() => {});
        await commands.ip([`link del ${bridge}`]).catch(() => {});
        await rm(deps.stateDir, { recursive: true, force: true });
        range = undefined;
        loading = undefined;
      });
    },
  };
}

async function readAttachment(path: string): Promise<Attachment | undefined> {
  try {
    const value: Attachment = JSON.parse(await readFile(path, 'utf8'));
    return toNumber(value.address) !== undefined && Array.isArray(value.portMappings) ? value : undefined;
  } catch {
    return undefined;
  }
}
