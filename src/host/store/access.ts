/** Store endpoints and client credentials of this host's commands, from flags or from the host's configuration. */
import { readFile } from 'node:fs/promises';
import { CodedError, messageOf } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { etcdFiles } from '../../pki/index.ts';
import type { StoreAccess } from '../../store/administration/port.ts';
import { createEtcdAdmin } from '../../store/client/etcd-admin.ts';
import { type EtcdSettings, readFile as readEtcdFile, settingsOf } from '../../store/config/index.ts';
import { readReferenced } from '../config/files.ts';
import { readMasterConfig, resolveRelativeTo } from '../config/master-config.ts';
import { canonicalRoot, pathsBelow } from '../config/paths.ts';
import { systemClock as clock } from '../process/process.ts';
import { isStoreUrl } from './store-url.ts';

export interface EtcdAccessOptions {
  readonly root?: string | undefined;
  /** URLs of endpoints, separated by commas. */
  readonly endpoints?: string | undefined;
  readonly cacert?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** `NAME:PASSWORD` for a store with authentication enabled. */
  readonly user?: string | undefined;
}

interface Found {
  readonly endpoints: readonly string[];
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly from: string;
}

/**
 * Access to the store. Flags take precedence over the host's configuration. Throws CodedErrors that name the flag, the
 * file or the field.
 */
export async function etcdAccess(options: EtcdAccessOptions): Promise<StoreAccess> {
  const given = options.endpoints?.split(',').map((endpoint) => endpointOf(endpoint.trim()));
  const files = [options.cacert, options.cert, options.key];
  const named = files.some((file) => file !== undefined);
  if ((options.cert === undefined) !== (options.key === undefined)) {
    throw new CodedError('bad-config', 'give --cert and --key together');
  }
  const user = userOf(options.user);
  const secure = given?.some((endpoint) => /^(?:https|unixs):/.test(endpoint)) ?? true;
  const host = given !== undefined && (named || !secure) ? undefined : await found(options.root, given === undefined);
  const from = named ? 'a flag' : (host?.from ?? 'a flag');
  const read = (path: string | undefined): Promise<string | undefined> =>
    path === undefined ? Promise.resolve(undefined) : readReferenced(path, from);
  const [ca, cert, key] = await Promise.all(
    named ? files.map(read) : [read(host?.ca), read(host?.cert), read(host?.key)],
  );
  const endpoints = given ?? host?.endpoints ?? [];
  return {
    endpoints,
    open: (only = endpoints) =>
      createEtcdAdmin({
        endpoints: only,
        ...(ca === undefined ? {} : { ca }),
        ...(cert === undefined ? {} : { cert }),
        ...(key === undefined ? {} : { key }),
        ...(user === undefined ? {} : { user }),
        log: silentLog,
        clock,
      }),
  };
}

function userOf(text: string | undefined): { readonly name: string; readonly password: string } | undefined {
  if (text === undefined) return undefined;
  const colon = text.indexOf(':');
  if (colon < 1) throw new CodedError('bad-config', '--user: give NAME:PASSWORD');
  return { name: text.slice(0, colon), password: text.slice(colon + 1) };
}

function endpointOf(text: string): string {
  const url = /^[a-z]+:\/\//.test(text) ? text : `http://${text}`;
  if (!isStoreUrl(url)) {
    throw new CodedError('bad-config', `--endpoints: ${text} is not a URL; give URLs such as https://10.0.0.5:2379`);
  }
  return url.replace(/\/$/, '');
}

/**
 * Endpoints from master-config.yaml, otherwise from the store's own configuration. `needed`: whether to throw if
 * neither file exists.
 */
async function found(root: string | undefined, needed: boolean): Promise<Found | undefined> {
  const absolute = await canonicalRoot(root);
  const { masterConfig, etcdConfig } = pathsBelow(absolute);
  if (await exists(masterConfig)) {
    const { etcdClientInfo } = await readMasterConfig(masterConfig);
    const at = (path: string | undefined) => (path === undefined ? undefined : resolveRelativeTo(masterConfig, path));
    const { urls, ca, certFile, keyFile } = etcdClientInfo;
    return { endpoints: urls, ca: at(ca), cert: at(certFile), key: at(keyFile), from: masterConfig };
  }
  if (await exists(etcdConfig)) {
    const { advertise, tls } = await ownEtcd(root);
    const { peer } = etcdFiles(absolute);
    const own = await exists(peer.cert);
    return {
      endpoints: advertise.client,
      ca: tls.client.trustedCaFile,
      ...(own ? { cert: peer.cert, key: peer.key } : {}),
      from: etcdConfig,
    };
  }
  if (!needed) return undefined;
  throw new CodedError(
    'bad-config',
    `neither ${masterConfig} nor ${etcdConfig} exists, so this host has no store; give --endpoints`,
  );
}

async function exists(path: string): Promise<boolean> {
  return readFile(path).then(
    () => true,
    () => false,
  );
}

/** Settings of this host's store from its configuration file. Throws CodedErrors with the file. */
export async function ownEtcd(root: string | undefined): Promise<EtcdSettings> {
  const { etcdConfig } = pathsBelow(await canonicalRoot(root));
  let text: string;
  try {
    text = await readFile(etcdConfig, 'utf8');
  } catch (error) {
    throw new CodedError('bad-config', `cannot read ${etcdConfig}: ${messageOf(error)}`, { cause: error });
  }
  const locate = (path: string): string => resolveRelativeTo(etcdConfig, path);
  return settingsOf(readEtcdFile(etcdConfig, text), { fromFile: true, locate, defaultHost: undefined }).settings;
}
