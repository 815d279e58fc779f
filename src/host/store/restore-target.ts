/** Name, data directory and cluster of a restored member, from flags or from this host's configuration. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { CodedError } from '../../base/errors.ts';
import type { RestoreTarget } from '../../store/administration/restore.ts';
import { parseInitialCluster } from '../../store/config/cluster.ts';
import { etcdConfigOf } from '../config/generate.ts';
import { canonicalRoot, pathsBelow } from '../config/paths.ts';
import { loadSettings } from '../config/settings.ts';
import { ownEtcd } from './access.ts';

export interface TargetOptions {
  readonly root?: string | undefined;
  readonly dataDir?: string | undefined;
  readonly name?: string | undefined;
  readonly initialCluster?: string | undefined;
  readonly initialClusterToken?: string | undefined;
  readonly initialAdvertisePeerUrls?: string | undefined;
}

const TOKEN = 'etcd-cluster';

/**
 * Target of a restore. Options that are not given are taken from the host's own store, or from etcdctl's defaults on
 * other hosts. Throws CodedError 'bad-config' with the flag or the file.
 */
export async function restoreTarget(options: TargetOptions): Promise<RestoreTarget> {
  const host = await hostsOwn(options.root);
  const name = options.name ?? host?.name ?? 'default';
  const dataDirectory = resolve(options.dataDir ?? host?.dataDirectory ?? `${name}.etcd`);
  const peerUrls = options.initialAdvertisePeerUrls?.split(',') ?? host?.peerUrls ?? ['http://localhost:2380'];
  const members =
    options.initialCluster === undefined
      ? own(host, { ...options, name }, peerUrls)
      : listed(options.initialCluster, name, options.initialAdvertisePeerUrls?.split(','));
  const { initialClusterToken: token } = options;
  return { dataDirectory, name, members, token: token ?? host?.token ?? TOKEN, anyToken: token === undefined };
}

interface HostsOwn extends Omit<RestoreTarget, 'anyToken'> {
  readonly peerUrls: readonly string[];
}

async function hostsOwn(root: string | undefined): Promise<HostsOwn | undefined> {
  const { etcdConfig } = pathsBelow(await canonicalRoot(root));
  const settings = await ownEtcd(root).catch((error: unknown) => {
    if (error instanceof CodedError && /ENOENT/.test(error.message)) return undefined;
    throw error;
  });
  if (settings === undefined) return beforeFirstStart(root);
  const { cluster, name, dataDirectory, advertise } = settings;
  if (cluster.members.length === 0)
    throw new CodedError(
      'bad-config',
      `${etcdConfig}: ${cluster.bootstrapProblem ?? 'initial-cluster is empty; list the members as NAME=URL'}`,
    );
  return { name, dataDirectory, members: cluster.members, token: cluster.token, peerUrls: advertise.peer };
}

/** Target on a host that is being rebuilt: it has a bootstrap file, but no etcd configuration yet. */
async function beforeFirstStart(root: string | undefined): Promise<HostsOwn | undefined> {
  const settings = await loadSettings({ root });
  if (!existsSync(settings.bootstrapFile) || !settings.roles.has('etcd') || settings.storage !== undefined)
    return undefined;
  const config = etcdConfigOf(settings);
  const peerUrl = config['initial-advertise-peer-urls'];
  const members = settings.etcd?.members.map(({ name, peerUrl: url }) => ({ name, peerUrls: [url] }));
  return {
    name: config.name,
    dataDirectory: config['data-dir'],
    members: members ?? [{ name: config.name, peerUrls: [peerUrl] }],
    token: config['initial-cluster-token'] ?? TOKEN,
    peerUrls: [peerUrl],
  };
}

function own(
  host: HostsOwn | undefined,
  { name, initialAdvertisePeerUrls }: TargetOptions & { readonly name: string },
  peerUrls: readonly string[],
): RestoreTarget['members'] {
  const same = host !== undefined && name === host.name && initialAdvertisePeerUrls === undefined;
  return same ? host.members : [{ name, peerUrls }];
}

function listed(text: string, name: string, peerUrls: readonly string[] | undefined): RestoreTarget['members'] {
  const members = parseInitialCluster(text);
  if ('problem' in members) throw new CodedError('bad-config', `--initial-cluster: ${members.problem}`);
  const self = members.find((member) => member.name === name);
  if (self === undefined)
    throw new CodedError('bad-config', `--initial-cluster does not name ${name}; add ${name}=URL, or give --name`);
  const apart = peerUrls?.find((url) => !self.peerUrls.includes(url));
  if (apart !== undefined)
    throw new CodedError(
      'bad-config',
      `--initial-cluster has no ${name}=${apart}, which --initial-advertise-peer-urls names`,
    );
  return members;
}

export async function snapshotDirectory(root: string | undefined): Promise<string> {
  return pathsBelow(await canonicalRoot(root)).snapshots;
}
