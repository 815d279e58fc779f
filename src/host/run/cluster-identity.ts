/**
 * The ID of the cluster to which this host's store belongs, in a file beside the store's authority. If the store is
 * missing although this file exists, for example because its file system is not mounted yet, no empty store is created.
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

/**
 * Checks that a recorded store exists. Throws CodedError 'store-missing' with the commands for both possible decisions.
 */
export async function checkStorePresent(settings: Settings): Promise<void> {
  if (!ownsStore(settings)) return;
  const { etcdConfig, etcdData: dataDirectory } = settings.paths;
  const id = await readClusterId(etcdConfig);
  // An interrupted restoration may have left a complete store in the directory `restored`.
  const places = ['', 'restored'].map((name) => join(dataDirectory, name, STORE_FILE));
  if (id === undefined || places.some(existsSync)) return;
  // If the store has several members, this member receives its data from them, and the store itself refuses to create a
  // second cluster. Without a configuration file, this host is the only member.
  const own = existsSync(etcdConfig) ? await ownEtcd(settings.root) : undefined;
  if (own?.cluster.state === 'existing' || (own?.cluster.members.length ?? 1) > 1) return;
  throw storeMissing({ id, dataDirectory });
}

/**
 * Writes the cluster's ID to the file as soon as this host's member answers. Ends without a record if `signal` is
 * aborted.
 */
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
