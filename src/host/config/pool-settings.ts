/**
 * Kubelet settings of this host's pool, in files that the machine config daemon writes. They replace arguments of
 * node-config.yaml, which only the host process writes.
 */
import { readFile } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { forbiddenField, kubeletArguments } from '../../openshift/machine-config/core/pools/kubelet-fields.ts';
import {
  KUBELET_CONF,
  RUNTIME_DIRECTORY,
  SIZING_ENV,
} from '../../openshift/machine-config/core/pools/node-settings.ts';
import { systemReservation } from '../../openshift/machine-config/core/pools/sizing.ts';
import type { NodeConfig } from './node-config.ts';

type Arguments = Readonly<Record<string, readonly string[]>>;

const MAX_BYTES = 1024 * 1024;
/** First line of a kubelet.conf that only shows the configuration. The kubelet ignores a file with this line. */
export const SHOWN_CONFIG =
  '# The configuration of the kubelet, without effect when edited: a KubeletConfig of the pool changes it.';
/**
 * File and equivalent kubelet argument of each supported setting of a ContainerRuntimeConfig, by its key in CRI-O's
 * configuration.
 */
const RUNTIME_ARGUMENTS: ReadonlyMap<string, readonly [file: string, argument: string]> = new Map([
  ['pids_limit', ['01-ctrcfg-pidsLimit', 'pod-max-pids']],
  ['log_size_max', ['01-ctrcfg-logSizeMax', 'container-log-max-size']],
]);

/**
 * The configuration with the pool's settings. Throws CodedError 'bad-config' with file and field. With `lenient`,
 * invalid settings are logged and ignored, because they can only be corrected while the host runs.
 */
export async function withPoolSettings(config: NodeConfig, root: string, lenient?: Log): Promise<NodeConfig> {
  let kubeletArguments: Arguments = {};
  for (const read of [runtimeSettings, sizing, kubeletConf]) {
    try {
      kubeletArguments = { ...kubeletArguments, ...(await read(root)) };
    } catch (error) {
      if (lenient === undefined) throw error;
      lenient.error('pool setting invalid; starting the kubelet without it', { error: messageOf(error) });
    }
  }
  return { ...config, kubeletArguments: { ...config.kubeletArguments, ...kubeletArguments } } as NodeConfig;
}

async function kubeletConf(root: string): Promise<Arguments> {
  const file = join(root, KUBELET_CONF);
  const text = await textOf(file);
  if (text === undefined || text.startsWith(SHOWN_CONFIG)) return {};
  const document = parse(text, file);
  // kubeadm writes a kubeconfig to a file with this name. Such a file is ignored.
  if (document['kind'] !== 'KubeletConfiguration') return {};
  const forbidden = forbiddenField(document);
  const converted = forbidden === undefined ? kubeletArguments(document) : { error: forbidden };
  if ('error' in converted) throw new CodedError('bad-config', `${file}: ${converted.error}`);
  return converted.arguments;
}

function parse(text: string, file: string): Readonly<Record<string, unknown>> {
  try {
    const document: unknown = JSON.parse(text);
    return typeof document === 'object' && document !== null ? { ...document } : {};
  } catch {
    // A kubeconfig is YAML, so it is ignored. The files that the pool writes are JSON.
    if (!/KubeletConfiguration/.test(text)) return {};
    throw new CodedError('bad-config', `${file}: is not JSON; write a KubeletConfig instead of a file`);
  }
}

/** Reserved resources, if the KubeletConfig of the pool has `autoSizingReserved`. */
async function sizing(root: string): Promise<Arguments> {
  const text = await textOf(join(root, SIZING_ENV));
  if (text === undefined || !/^NODE_SIZING_ENABLED=true$/m.test(text)) return {};
  const { cpu, memory } = systemReservation(totalmem(), availableParallelism());
  return { 'system-reserved': [`cpu=${cpu}`, `memory=${memory}`] };
}

async function runtimeSettings(root: string): Promise<Arguments> {
  const found: Record<string, readonly string[]> = {};
  for (const [key, [name, argument]] of RUNTIME_ARGUMENTS) {
    const file = join(root, RUNTIME_DIRECTORY, name);
    const text = await textOf(file);
    if (text === undefined) continue;
    const value = new RegExp(`^\\s*${key}\\s*=\\s*(\\d{1,15})\\s*$`, 'm').exec(text)?.[1];
    if (value === undefined) throw new CodedError('bad-config', `${file}: ${key}: is not a whole number`);
    found[argument] = [value];
  }
  return found;
}

async function textOf(file: string): Promise<string | undefined> {
  try {
    const text = await readFile(file, 'utf8');
    if (text.length > MAX_BYTES) throw new CodedError('bad-config', `${file}: has more than ${MAX_BYTES} bytes`);
    return text;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
