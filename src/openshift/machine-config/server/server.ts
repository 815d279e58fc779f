/**
 * Machine config server: serves the configuration of a pool to hosts during their installation. A configuration may
 * contain secrets, so a join token is required and requests from pod addresses are rejected. Source: pkg/server of
 * openshift/machine-config-operator.
 */

import type { JsonObject } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { isInNetwork, peerAddress } from '../../../base/addresses/addresses.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { dns1123SubdomainErrors } from '../../../base/names.ts';
import { reviewAccess, reviewToken } from '../../../client/reviews.ts';
import type { ApiClient } from '../../../client/types.ts';
import {
  CONFIG_STATE,
  CURRENT_CONFIG,
  DESIRED_CONFIG,
  type MachineConfig,
  type MachineConfigPool,
} from '../kinds/machine-config-types.ts';
import type { ConfigAnswer, ConfigRequest } from './port.ts';
import { acceptedVersion, convertConfig } from './versions.ts';

export interface MachineConfigServerOptions {
  /** Client that may create token and access reviews, and read pools and MachineConfigs. */
  readonly client: ApiClient;
  /** Address ranges of pods. Connections from these ranges are rejected. */
  readonly podNetworks: readonly string[];
  readonly log: Log;
}

export interface MachineConfigServer {
  /** Responds to a request. Never rejects. */
  handle(request: ConfigRequest): Promise<ConfigAnswer>;
  admits(remoteAddress: string): boolean;
}

const ANNOTATIONS_FILE = '/etc/machine-config-daemon/node-annotations.json';
const ENCAPSULATED_FILE = '/etc/ignition-machine-config-encapsulated.json';
const CONFIG_PATH = /^\/config\/([^/]{1,253})$/;
const BEARER = /^Bearer ([\x21-\x7e]{1,4096})$/i;

const UNAUTHORIZED: ConfigAnswer = {
  status: 401,
  headers: { 'www-authenticate': 'Bearer realm="machine-config-server"' },
};

export function createMachineConfigServer(options: MachineConfigServerOptions): MachineConfigServer {
  const { client, podNetworks, log } = options;

  const answer = async ({
    method,
    path,
    accept,
    authorization,
    remoteAddress,
  }: ConfigRequest): Promise<ConfigAnswer> => {
    if (method !== 'GET' && method !== 'HEAD') return { status: 405, headers: { allow: 'GET, HEAD' } };
    if (path === '/healthz') return { status: 200 };
    const pool = CONFIG_PATH.exec(path)?.[1];
    if (pool === undefined || dns1123SubdomainErrors(pool).length > 0) return { status: 404 };
    const version = acceptedVersion(accept);
    if (version === undefined) return { status: 400 };
    const token = BEARER.exec(authorization)?.[1];
    const access = token === undefined ? 'unauthenticated' : await reviewed(client, token, path);
    if (access !== 'allowed') {
      log.warn('configuration refused', { pool, from: remoteAddress, reason: access });
      return access === 'forbidden' ? { status: 403 } : UNAUTHORIZED;
    }
    const config = await servedConfig(client, pool);
    if (config === undefined) return { status: 404 };
    log.info('configuration served', { pool, from: remoteAddress, version });
    return {
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(convertConfig(config, version)),
    };
  };

  return {
    admits: (remoteAddress) => {
      const address = peerAddress(remoteAddress);
      return !podNetworks.some((network) => isInNetwork(address, network));
    },
    handle: async (request) => {
      try {
        return await answer(request);
      } catch (error) {
        log.warn('configuration not served', { path: request.path, error: messageOf(error) });
        return { status: isApiError(error) ? 500 : 503 };
      }
    },
  };
}

type Access = 'allowed' | 'forbidden' | 'unauthenticated';

/** Authenticates the token through the API server. Checks whether roles and scopes of the user allow to get `path`. */
async function reviewed(client: ApiClient, token: string, path: string): Promise<Access> {
  const identity = await reviewToken(client, token);
  if (identity === undefined) return 'unauthenticated';
  const attributes = { nonResourceAttributes: { path, verb: 'get' } };
  return (await reviewAccess(client, identity, attributes)) ? 'allowed' : 'forbidden';
}

/**
 * Configuration for a new host of the pool: the newest one if a node already runs it, otherwise the last completed one.
 */
async function servedConfig(client: ApiClient, poolName: string): Promise<JsonObject | undefined> {
  const pool = await found<MachineConfigPool>(() => client.resource(resources.machineConfigPools).get(poolName));
  if (pool === undefined) return undefined;
  const { spec, status } = pool;
  const newest = spec?.configuration?.name ?? '';
  const complete = status?.configuration?.name ?? '';
  const name = (status?.updatedMachineCount ?? 0) > 0 || complete === '' ? newest : complete;
  if (name === '') return undefined;
  const config = await found<MachineConfig>(() => client.resource(resources.machineConfigs).get(name));
  return config === undefined ? undefined : withFiles(config, name);
}

/**
 * Adds two files to the configuration: the annotations of the new Node, and the parts of the MachineConfig that are not
 * Ignition.
 */
function withFiles(machineConfig: MachineConfig, name: string): JsonObject {
  const config = machineConfig.spec?.config ?? {};
  const storage = config['storage'] as { readonly files?: JsonObject[] } | undefined;
  const annotations = { [CURRENT_CONFIG]: name, [DESIRED_CONFIG]: name, [CONFIG_STATE]: 'Done' };
  const { metadata, spec, ...type } = machineConfig;
  const encapsulated = {
    ...type,
    metadata: { name: metadata?.name, annotations: metadata?.annotations },
    spec: { ...spec, config: { ignition: config['ignition'] } },
  };
  const files = [
    ...(storage?.files ?? []),
    file(ANNOTATIONS_FILE, JSON.stringify(annotations)),
    file(ENCAPSULATED_FILE, JSON.stringify(encapsulated)),
  ];
  const wanted = spec?.kernelArguments ?? [];
  const kernel = wanted.length === 0 ? {} : { kernelArguments: { shouldExist: [...wanted] } };
  return { ...config, ...kernel, storage: { ...storage, files } };
}

const file = (path: string, text: string): JsonObject => ({
  path,
  overwrite: true,
  mode: 0o644,
  contents: { source: `data:,${encodeURIComponent(text)}` },
});

async function found<T>(get: () => Promise<T>): Promise<T | undefined> {
  try {
    return await get();
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}
