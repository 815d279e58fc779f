/**
 * Network configurations in a directory, `/etc/cni/net.d`. As in other runtimes, the first file by name is used.
 * Source: CNI specification 1.0.0, section 1; libcni's ConfFiles.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, messageOf } from '../../../base/errors.ts';

export interface PluginConfig {
  readonly type: string;
  /** Run-time settings that the plug-in supports: `portMappings`, `ipRanges`. */
  readonly capabilities?: Readonly<Record<string, boolean>>;
  readonly [field: string]: unknown;
}

export interface NetworkConfig {
  readonly name: string;
  readonly cniVersion: string;
  readonly disableCheck: boolean;
  readonly plugins: readonly PluginConfig[];
}

/** Supported versions, whose results have the same format. */
const VERSIONS = new Set(['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0']);
const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;
const MAX_PLUGINS = 32;

/**
 * Reads the first configuration file. Resolves with undefined if there is none. Throws CodedError 'bad-config' with
 * file and field.
 */
export async function readNetworkConfig(
  directory: string,
): Promise<{ readonly file: string; readonly config: NetworkConfig } | undefined> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const [first] = names.filter((name) => /\.(conflist|conf|json)$/.test(name)).sort();
  if (first === undefined) return undefined;
  const file = join(directory, first);
  return { file, config: parseNetworkConfig(file, await readFile(file, 'utf8')) };
}

export function parseNetworkConfig(file: string, text: string): NetworkConfig {
  const refuse = (why: string): CodedError => new CodedError('bad-config', `${file}: ${why}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw refuse(`not valid JSON: ${messageOf(error)}`);
  }
  if (!isRecord(value)) throw refuse('is not a JSON object; write a network configuration list');
  const { name, cniVersion = '0.1.0', disableCheck = false } = value;
  if (typeof name !== 'string' || !NAME.test(name))
    throw refuse('name: start with a letter or digit, then A-Z a-z 0-9 _ . -');
  if (typeof cniVersion !== 'string' || !VERSIONS.has(cniVersion))
    throw refuse(`cniVersion: "${String(cniVersion)}" is not supported; use ${[...VERSIONS].join(', ')}`);
  // A file with a single plug-in has the plug-in's fields at the top level.
  const plugins: unknown = value['plugins'] ?? [value];
  if (!Array.isArray(plugins) || plugins.length === 0 || plugins.length > MAX_PLUGINS)
    throw refuse(`plugins: give 1 to ${MAX_PLUGINS} plug-ins`);
  return {
    name,
    cniVersion,
    disableCheck: disableCheck === true || disableCheck === 'true',
    plugins: plugins.map((plugin: unknown, index) => {
      const { type } = isRecord(plugin) ? plugin : {};
      // The type is the name of a file in the plug-in directories and must not be a path.
      if (!isRecord(plugin) || typeof type !== 'string' || !NAME.test(type))
        throw refuse(`plugins[${index}].type: name a plug-in such as bridge`);
      return { ...plugin, type };
    }),
  };
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
