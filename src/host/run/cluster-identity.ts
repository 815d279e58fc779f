/**
 * The cluster that this host's store belongs to, recorded beside the store's authority. With it a missing store, for
 * example on a file system that is not mounted yet, is not replaced by an empty one.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { replace } from '../../openshift/revisions/io/index.ts';
import { storeMissing } from '../../store/index.ts';
import { ownsStore } from '../certificates/issue-certificates.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process/process.ts';
import { etcdAccess, ownEtcd } from '../store/access.ts';
import { clusterIdFile, readClusterId, STORE_FILE } from '../store/cluster-id.ts';

const POLL_MS = 300;
const ANSWER_MS = 2_000;

/** Throws CodedError 'store-missing' with the commands for both possible decisions. */
export async function checkStorePresent(settings: Settings): Promise<void> {
  if (!ownsStore(settings)) return;
  const { etcdConfig, etcdData: dataDirectory } = settings.paths;
  const id = await readClusterId(etcdConfig);
  // An interrupted fallback has left a complete store beside its place.
  const places = ['', 'restored'].map((name) => join(dataDirectory, name, STORE_FILE));
  if (id === undefined || places.some(existsSync)) return;
  // One of several members gets its data from the other members, and the store itself refuses to create a second
  // cluster. Without a configuration file this host is the only member.
  const own = existsSync(etcdConfig) ? await ownEtcd(settings.root) : undefined;
  if (own?.cluster.state === 'existing' || (own?.cluster.members.length ?? 1) > 1) return;
  throw storeMissing({ id, dataDirectory });
}

/** Records the cluster as soon as this host's member answers, unless the signal aborts before. */
export async function recordCluster(settings: Settings, signal: AbortSignal, log: Log): Promise<void> {
  if (!ownsStore(settings)) return;
  const { root, ports, paths } = settings;
  const file = clusterIdFile(paths.etcdConfig);
  const attempt = async (): Promise<void> => {
    const admin = (await etcdAccess({ root })).open([`https://127.0.0.1:${ports.etcd}`]);
    try {
      const { clusterId } = await admin.status(ANSWER_MS);
      if (clusterId === '' || clusterId === '0') throw new CodedError('unavailable', 'the member has no cluster yet');
      const present = await readFile(file, 'utf8').catch(() => '');
      if (present.trim() === clusterId) return;
      await replace(file, Buffer.from(`${clusterId}\n`), 0o644);
      log.info('cluster of the store recorded', { cluster: clusterId, file });
    } finally {
      admin.close();
    }
  };
  while (!signal.aborted) {
    try {
      return await attempt();
    } catch (error) {
      log.v(4, 'cluster of the store not recorded; retrying', { error: messageOf(error) });
      await new Promise((resolve) => clock.setTimer(POLL_MS, () => resolve(undefined)));
    }
  }
}
