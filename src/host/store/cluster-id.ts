/** The recorded ID of the cluster to which a host's store belongs. */
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CodedError } from '../../base/errors.ts';
import { canonicalRoot, pathsBelow } from '../config/paths.ts';

export const CLUSTER_ID_NAME = 'cluster-id';
export const STORE_FILE = 'revisions.db';

/** Path of the file with the cluster ID. It is in the directory of the store's configuration and authority. */
export const clusterIdFile = (etcdConfig: string): string => join(dirname(etcdConfig), CLUSTER_ID_NAME);

/**
 * The recorded ID; undefined if this host's store has not belonged to a cluster yet. Rejects if the file cannot be
 * read.
 */
export async function readClusterId(etcdConfig: string): Promise<string | undefined> {
  try {
    return (await readFile(clusterIdFile(etcdConfig), 'utf8')).trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Deletes the recorded ID, so that the next start of this host creates a new cluster with an empty store. Resolves with
 * the former ID; undefined if none was recorded. Throws CodedError 'not-empty' if a store exists.
 */
export async function allowNewCluster(root: string | undefined): Promise<string | undefined> {
  const { etcdConfig, etcdData } = pathsBelow(await canonicalRoot(root));
  if (existsSync(join(etcdData, STORE_FILE)))
    throw new CodedError('not-empty', `${etcdData}: this host has a store; run hyperedge reset to leave its cluster`);
  const former = await readClusterId(etcdConfig);
  await rm(clusterIdFile(etcdConfig), { force: true });
  return former;
}
