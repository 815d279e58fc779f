/** The record of the cluster that a host's store belongs to. */
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CodedError } from '../../base/errors.ts';
import { canonicalRoot, pathsBelow } from '../config/settings.ts';

export const CLUSTER_ID_NAME = 'cluster-id';
export const STORE_FILE = 'revisions.db';

/** Path of the recorded cluster ID, in the directory of the store's configuration and authority. */
export const clusterIdFile = (etcdConfig: string): string => join(dirname(etcdConfig), CLUSTER_ID_NAME);

/** Returns undefined if this host's store has not belonged to a cluster yet. Rejects if the record cannot be read. */
export async function readClusterId(etcdConfig: string): Promise<string | undefined> {
  try {
    return (await readFile(clusterIdFile(etcdConfig), 'utf8')).trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Lets the next start of this host create a new cluster with an empty store. Resolves with the former cluster;
 * undefined if none was recorded. Throws CodedError 'not-empty' if a store exists.
 */
export async function allowNewCluster(root: string | undefined): Promise<string | undefined> {
  const { etcdConfig, etcdData } = pathsBelow(await canonicalRoot(root));
  if (existsSync(join(etcdData, STORE_FILE)))
    throw new CodedError('not-empty', `${etcdData}: this host has a store; run hyperedge reset to leave its cluster`);
  const former = await readClusterId(etcdConfig);
  await rm(clusterIdFile(etcdConfig), { force: true });
  return former;
}
