/**
 * Pod networks by CNI plug-ins, instead of the embedded one. Input and result of an ADD are stored in a file per
 * sandbox, because DEL and CHECK need them, even after a change of the configuration. Source: CNI specification 1.0.0,
 * sections 3 and 4.
 */

import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ipFamilyOf, isInNetwork } from '../../../base/addresses/addresses.ts';
import { decodeJson, fields, list, object, own, text } from '../../../base/decode.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { PodEndpoint, PodNetwork } from '../../../runtime/oci/port.ts';
import { type PortMapping, RuntimeError } from '../../../runtime/port.ts';
import type { NetworkConfig, PluginConfig } from './config.ts';
import { type CniResult, callPlugin, locate } from './plugin.ts';

export interface CniNetworkOptions {
  readonly config: NetworkConfig;
  /** Directories with plug-ins, in search order. */
  readonly pluginDirectories: readonly string[];
  /** Directory of the records of attached sandboxes, which survive restarts of the host process. */
  readonly stateDirectory: string;
  readonly nsenterPath?: string;
  readonly ipPath?: string;
  readonly log: Log;
}

export interface CniNetwork extends PodNetwork {
  /** Runs CHECK. Throws RuntimeError 'network' if the plug-ins report that the sandbox's network has changed. */
  check(sandboxId: string): Promise<void>;
  destroy(): Promise<void>;
}

interface Attachment {
  readonly sandboxId: string;
  readonly netnsPath: string;
  readonly args: string;
  readonly portMappings: readonly PortMapping[];
  readonly podCidrs: readonly string[];
  readonly config: NetworkConfig;
  readonly result: CniResult | undefined;
}

const ATTACHMENT = own<Attachment>(
  object({ sandboxId: text, netnsPath: text, args: text, config: object({ plugins: list(fields) }) }),
);

const INTERFACE = 'eth0';
const SUFFIX = '.cni';
const MAX_LIST = 64;
/** Versions of the specification without CHECK, which was added in 0.4.0. */
const WITHOUT_CHECK = new Set(['0.3.0', '0.3.1']);

export function createCniNetwork(options: CniNetworkOptions): CniNetwork {
  return new PluginNetwork(options);
}

class PluginNetwork implements CniNetwork {
  readonly #options: CniNetworkOptions;
  readonly #attachments = new Map<string, Attachment>();
  #podCidrs: readonly string[] = [];
  #loaded: Promise<void> | undefined;

  constructor(options: CniNetworkOptions) {
    this.#options = options;
  }

  async attach(netnsPath: string, pod: PodEndpoint): Promise<{ ips: readonly string[] }> {
    await this.#load();
    const known = this.#attachments.get(pod.sandboxId);
    if (known?.result !== undefined) return { ips: addressesOf(known.result) };
    const { config } = this.#options;
    const [port] = pod.portMappings;
    if (port !== undefined && !config.plugins.some((plugin) => takes(plugin, 'portMappings'))) {
      throw new RuntimeError(
        'network',
        `host port ${port.hostPort}/${port.protocol}: CNI network "${config.name}" has no plug-in with the capability portMappings; add portmap to its list`,
      );
    }
    if (this.#podCidrs.length === 0 && config.plugins.some((plugin) => takes(plugin, 'ipRanges')))
      throw new RuntimeError('network', 'the node has no pod CIDR yet; pods wait for it');
    // All plug-ins are located first, because a network that was created partly could not be removed without the
    // missing plug-in.
    for (const { type } of config.plugins) await locate(type, this.#options.pluginDirectories);
    const attachment: Attachment = {
      sandboxId: pod.sandboxId,
      netnsPath,
      args: argsOf(pod),
      portMappings: pod.portMappings,
      podCidrs: this.#podCidrs,
      config,
      result: undefined,
    };
    await this.#write(attachment);
    try {
      await loopbackUp(netnsPath, this.#options);
      let result: CniResult | undefined;
      for (const plugin of config.plugins)
        result = (await this.#call('ADD', plugin, { ...attachment, result })) ?? result;
      const ips = result === undefined ? [] : addressesOf(result);
      if (ips.length === 0) throw new RuntimeError('network', `CNI network "${config.name}" gave the pod no address`);
      await this.#write({ ...attachment, result });
      this.#options.log.v(4, 'pod attached', { pod: `${pod.namespace}/${pod.name}`, ips: ips.join() });
      return { ips };
    } catch (error) {
      await this.detach(pod.sandboxId).catch((again: unknown) =>
        this.#options.log.warn('pod network clean-up failed', { sandbox: pod.sandboxId, error: messageOf(again) }),
      );
      throw error;
    }
  }

  async detach(sandboxId: string): Promise<void> {
    await this.#load();
    const attachment = this.#attachments.get(sandboxId);
    if (attachment === undefined) return;
    const failures: unknown[] = [];
    for (const plugin of [...attachment.config.plugins].reverse())
      await this.#call('DEL', plugin, attachment).catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
    await rm(this.#path(sandboxId), { force: true });
    this.#attachments.delete(sandboxId);
  }

  async check(sandboxId: string): Promise<void> {
    await this.#load();
    const attachment = this.#attachments.get(sandboxId);
    if (attachment === undefined) throw new RuntimeError('network', `sandbox ${sandboxId} is not attached`);
    if (attachment.netnsPath === '')
      throw new RuntimeError('network', `sandbox ${sandboxId}: its network record could not be read`);
    const { config } = attachment;
    if (config.disableCheck || WITHOUT_CHECK.has(config.cniVersion)) return;
    for (const plugin of config.plugins) await this.#call('CHECK', plugin, attachment);
  }

  async retain(alive: ReadonlySet<string>): Promise<void> {
    await this.#load();
    for (const sandboxId of [...this.#attachments.keys()]) {
      if (alive.has(sandboxId)) continue;
      await this.detach(sandboxId).catch((error: unknown) =>
        this.#options.log.warn('sandbox not detached; retrying at the next start', {
          sandbox: sandboxId,
          error: messageOf(error),
        }),
      );
    }
  }

  /** Sets the ranges that are passed to plug-ins with the capability `ipRanges`. */
  async setPodCidrs(cidrs: readonly string[]): Promise<void> {
    this.#podCidrs = cidrs;
  }

  async destroy(): Promise<void> {
    await this.retain(new Set());
  }

  #call(
    command: 'ADD' | 'DEL' | 'CHECK',
    plugin: PluginConfig,
    { sandboxId, netnsPath, args, portMappings, podCidrs, config, result }: Attachment,
  ): Promise<CniResult | undefined> {
    const { capabilities: _, ...own } = plugin;
    const runtimeConfig = {
      ...(takes(plugin, 'portMappings') && portMappings.length > 0
        ? { portMappings: portMappings.map(({ protocol, ...each }) => ({ ...each, protocol: protocol.toLowerCase() })) }
        : {}),
      ...(takes(plugin, 'ipRanges') && podCidrs.length > 0 ? { ipRanges: podCidrs.map((subnet) => [{ subnet }]) } : {}),
    };
    return callPlugin({
      command,
      netnsPath,
      args,
      type: plugin.type,
      directories: this.#options.pluginDirectories,
      containerId: sandboxId,
      ifName: INTERFACE,
      input: {
        ...own,
        name: config.name,
        cniVersion: config.cniVersion,
        ...(Object.keys(runtimeConfig).length === 0 ? {} : { runtimeConfig }),
        ...(result === undefined ? {} : { prevResult: result }),
      },
    });
  }

  #path(sandboxId: string): string {
    return join(this.#options.stateDirectory, `${sandboxId}${SUFFIX}`);
  }

  async #write(attachment: Attachment): Promise<void> {
    this.#attachments.set(attachment.sandboxId, attachment);
    const path = this.#path(attachment.sandboxId);
    await writeFile(`${path}.new`, JSON.stringify(attachment), { mode: 0o600 });
    await rename(`${path}.new`, path);
  }

  /**
   * Attachment of a sandbox whose record cannot be read. DEL without a network namespace releases what the plug-ins
   * hold for the sandbox, such as its addresses.
   */
  #unreadable(sandboxId: string): Attachment {
    const args = `IgnoreUnknown=1;K8S_POD_INFRA_CONTAINER_ID=${sandboxId}`;
    const { config } = this.#options;
    return { sandboxId, netnsPath: '', args, portMappings: [], podCidrs: [], config, result: undefined };
  }

  #load(): Promise<void> {
    this.#loaded ??= (async () => {
      const { stateDirectory, log } = this.#options;
      await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
      for (const name of await readdir(stateDirectory)) {
        if (!name.endsWith(SUFFIX)) continue;
        const sandboxId = name.slice(0, -SUFFIX.length);
        try {
          const record = decodeJson(ATTACHMENT, await readFile(join(stateDirectory, name), 'utf8'), name);
          if (record.sandboxId !== sandboxId) throw new Error('the record is of another sandbox');
          this.#attachments.set(sandboxId, record);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
          // The plug-ins may have connected the sandbox, so they must remove it when it ends.
          log.error('pod network record unreadable; the pod will be removed with the current configuration', {
            file: join(stateDirectory, name),
            error: messageOf(error),
          });
          this.#attachments.set(sandboxId, this.#unreadable(sandboxId));
        }
      }
    })().catch((error: unknown) => {
      this.#loaded = undefined;
      throw error;
    });
    return this.#loaded;
  }
}

const takes = (plugin: PluginConfig, capability: string): boolean => plugin.capabilities?.[capability] === true;

/** Value of CNI_ARGS, with the same keys as in other runtimes. */
function argsOf({ namespace, name, sandboxId, uid }: PodEndpoint): string {
  return [
    'IgnoreUnknown=1',
    `K8S_POD_NAMESPACE=${namespace}`,
    `K8S_POD_NAME=${name}`,
    `K8S_POD_INFRA_CONTAINER_ID=${sandboxId}`,
    `K8S_POD_UID=${uid}`,
  ].join(';');
}

/** Addresses of interfaces in the sandbox. Throws RuntimeError 'network' for addresses that a pod cannot have. */
function addressesOf(result: CniResult): string[] {
  const { ips, interfaces } = result;
  const listed = listOf(interfaces, 'interfaces');
  const found = listOf(ips, 'ips').filter(({ interface: index }) => {
    const owner = typeof index === 'number' ? listed[index] : undefined;
    return index === undefined || (owner?.['sandbox'] ?? '') !== '';
  });
  return found.map(({ address }) => {
    const ip = typeof address === 'string' ? (address.split('/')[0] ?? '') : '';
    if (!isPodAddress(ip))
      throw new RuntimeError(
        'network',
        `CNI result: ips: ${JSON.stringify(address)?.slice(0, 64)} is not a valid pod address`,
      );
    return ip;
  });
}

/** Loopback, link-local, multicast and unspecified ranges, which are not valid for pods. */
const NO_POD = '0.0.0.0/8 127.0.0.0/8 169.254.0.0/16 224.0.0.0/3 ::/127 ::ffff:0:0/96 fe80::/10 ff00::/8'.split(' ');

const isPodAddress = (ip: string): boolean => ipFamilyOf(ip) !== 0 && !NO_POD.some((range) => isInNetwork(ip, range));

function listOf(value: unknown, field: string): Readonly<Record<string, unknown>>[] {
  if (value === undefined || value === null) return [];
  if (
    Array.isArray(value) &&
    value.length <= MAX_LIST &&
    value.every((each) => typeof each === 'object' && each !== null)
  )
    return value;
  throw new RuntimeError('network', `CNI result: ${field} is not a list of at most ${MAX_LIST} objects`);
}

/** Brings up loopback, which the CNI specification leaves to the runtime. */
function loopbackUp(netnsPath: string, { nsenterPath = 'nsenter', ipPath = 'ip' }: CniNetworkOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(nsenterPath, [`--net=${netnsPath}`, ipPath, 'link', 'set', 'lo', 'up'], { stdio: 'ignore' });
    child.on('error', (error) => reject(new RuntimeError('network', `${nsenterPath}: ${error.message}`)));
    child.on('close', (code) =>
      code === 0
        ? resolve()
        : reject(new RuntimeError('network', `loopback of ${netnsPath} not set up (exit ${code})`)),
    );
  });
}
