/**
 * Joins this host to a cluster. The host verifies the cluster and reads its settings. A node then requests its client
 * certificate; a master receives the cluster's keys. `joined.yaml` is written last, so an interrupted join is repeated
 * at the next start.
 */
import { access, mkdir } from 'node:fs/promises';
import { join as joinPath } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { CodedError, ifMissing, ignore } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { KUBERNETES_VERSION } from '../../base/versions/version.ts';
import { apiServerSkew, kubeletSkew } from '../../base/versions/version-skew.ts';
import { createKubeconfig, masterFiles, nodeFiles, writeWhole } from '../../pki/index.ts';
import type { Role } from '../config/bootstrap.ts';
import { readBootstrap } from '../config/bootstrap-files.ts';
import { checkAgainstCluster, type Joined, writeJoined } from '../config/joined.ts';
import type { Settings } from '../config/settings.ts';
import { checkPorts } from '../network/port-check.ts';
import { type OpenedClient, openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import { fetchClusterInfo, fetchRoles, receiveKeyring, receiveKeys, serverVersion } from './cluster-info.ts';
import { discover } from './discovery.ts';
import { enrol } from './enrol.ts';
import { checkIdentity } from './host-identity.ts';
import { type MasterKeys, writeMasterKeys } from './sealed-keys.ts';
import { parseToken, type Token } from './token-format.ts';

export interface JoinContext {
  readonly log: Log;
  /** Prints a note in the progress output. */
  readonly note: (text: string) => void;
  readonly machineId: string;
  /** Aborted if the host process is stopped during the join. */
  readonly signal: AbortSignal;
}

/**
 * Limit of the difference between the clocks. With a larger difference, a new certificate or token may not be valid
 * yet, or may have expired, on the other host.
 */
const MAX_CLOCK_MS = 3_600_000;
const REACH_MS = 30_000;
const RETRY_MS = 1_000;

/** Whether this host must join before it can start. */
export async function mustJoin(settings: Settings): Promise<boolean> {
  if (settings.joined) return false;
  if (settings.join !== undefined) return true;
  // An administrator has installed bootstrap credentials, as in OKD.
  const { bootstrapKubeconfig, kubeconfig } = nodeFiles(settings.root);
  const isMaster = await exists(masterFiles(settings.root).ca.key);
  return !isMaster && (await exists(bootstrapKubeconfig)) && !(await exists(kubeconfig));
}

/** Joins the cluster. Throws CodedErrors of one line with the field and the fix, or an ApiError of the cluster. */
export async function joinCluster(settings: Settings, context: JoinContext): Promise<void> {
  await requireNew(settings);
  await mkdir(nodeFiles(settings.root).certificates, { recursive: true, mode: 0o700 });
  const { join, bootstrapFile } = settings;
  const { bootstrapKubeconfig } = nodeFiles(settings.root);
  const token = join === undefined ? undefined : parseToken(join.token, `${bootstrapFile}: join.token`);
  if (join !== undefined && token !== undefined) {
    const { caPem, serverMs } = await reach(() => discover(join.server, token, join.caHash), context);
    checkClock(join.server, serverMs, clock.nowMs());
    const client = { token: token.bearer };
    const text = createKubeconfig({ server: join.server, caPem, user: 'kubelet-bootstrap', client });
    await writeWhole(bootstrapKubeconfig, text);
    context.note(`cluster at ${join.server} verified`);
  }
  const opened = await openClient(bootstrapKubeconfig, 'kubelet/hyperedge', { clock, random, log: context.log });
  try {
    await joinWith(opened, settings, token, context);
  } finally {
    await opened.close();
  }
}

async function joinWith(
  { client, server, caPem }: OpenedClient,
  settings: Settings,
  token: Token | undefined,
  context: JoinContext,
): Promise<void> {
  const version = await serverVersion(client, server);
  const granted: readonly Role[] = token === undefined ? ['node'] : await fetchRoles(client, token);
  const roles = rolesFor(settings, granted);
  const own = KUBERNETES_VERSION.gitVersion;
  const skew = kubeletSkew(own, version) ?? (roles.includes('master') ? apiServerSkew(own, version) : undefined);
  if (skew !== undefined) throw new CodedError('version-skew', `join.server: ${skew}`);
  await checkPorts({ ...settings, roles: new Set(roles) }, new Set());
  await checkIdentity(client, settings.nodeName, context.machineId);
  const { cluster, apiServers } = await fetchClusterInfo(client, server);
  checkAgainstCluster(settings.bootstrapFile, (await readBootstrap(settings.bootstrapFile))?.file, cluster);
  if (caPem === undefined)
    throw new CodedError(
      'bad-config',
      `${nodeFiles(settings.root).bootstrapKubeconfig}: names no certificate-authority`,
    );
  const keys = needsKeys(roles) ? await receiveKeys(client, token) : undefined;
  if (keys === undefined) {
    const keyring = await receiveKeyring(client);
    if (keyring !== undefined) await writeWhole(settings.gossip.keyringFile, keyring);
    await enrol(client, settings, { caPem, note: context.note, signal: context.signal });
  } else await writeMasterKeys(settings, keys);
  const etcd = keys === undefined ? undefined : storeOf(settings, roles, keys);
  await writeJoined(settings.paths.joined, {
    server,
    apiServers: [...apiServers],
    roles: [...roles],
    cluster,
    ...(etcd === undefined ? {} : { etcd }),
  });
  context.note(`joined as ${roles.join(', ')}: pods ${cluster.clusterCIDR}, services ${cluster.serviceCIDR}`);
}

const needsKeys = (roles: readonly Role[]): boolean => roles.includes('master') || roles.includes('etcd');

/**
 * Roles of this host: those in the bootstrap file, otherwise all roles that the token grants. Throws CodedError
 * 'bad-roles' if the token does not grant a role.
 */
export function rolesFor(
  { roles, rolesGiven, bootstrapFile }: Pick<Settings, 'roles' | 'rolesGiven' | 'bootstrapFile'>,
  granted: readonly Role[],
): readonly Role[] {
  if (!rolesGiven) return granted;
  const more = [...roles].filter((role) => !granted.includes(role));
  if (more.length === 0) return [...roles];
  throw new CodedError(
    'bad-roles',
    `${bootstrapFile}: roles: the token is for ${granted.join(',')}, not for ${more.join(',')}; remove them, or create a token with "hyperedge token create --roles ${[...roles].join(',')}"`,
  );
}

/** The store's members, for the configuration of this host. */
function storeOf(
  { nodeName, nodeIp, ports, storage }: Settings,
  roles: readonly Role[],
  { members = {}, storeToken }: MasterKeys,
): Joined['etcd'] {
  if (storage !== undefined) return undefined;
  const all = new Map(Object.entries(members));
  const host = nodeIp.includes(':') ? `[${nodeIp}]` : nodeIp;
  if (roles.includes('etcd')) all.set(nodeName, `https://${host}:${ports.etcdPeer}`);
  return { members: all, ...(storeToken === undefined ? {} : { token: storeToken }) };
}

/** Throws CodedError 'already-a-cluster' if this host has its own store, whose data the join would replace. */
async function requireNew({ paths, bootstrapFile }: Settings): Promise<void> {
  const file = joinPath(paths.etcdData, 'revisions.db');
  if (!(await exists(file))) return;
  throw new CodedError(
    'already-a-cluster',
    `${bootstrapFile}: join: this host already has a cluster (${file} exists); remove the field, or run "hyperedge reset" first`,
  );
}

/** Retries while the server does not answer. Other errors reject immediately. */
async function reach<T>(attempt: () => Promise<T>, { note, signal }: JoinContext): Promise<T> {
  const beganMs = clock.monotonicMs();
  for (let noted = false; ; ) {
    try {
      return await attempt();
    } catch (error) {
      const isFinal = !(error instanceof CodedError) || error.code !== 'unreachable' || signal.aborted;
      if (isFinal || clock.monotonicMs() - beganMs > REACH_MS) throw error;
      if (!noted) note(`${error.message}; retrying`);
      noted = true;
      await wait(RETRY_MS, undefined, { signal }).catch(
        ignore('the next attempt ends the loop if the signal is aborted'),
      );
    }
  }
}

/** Compares the clocks. Throws CodedError 'clock' with the command that sets this host's clock. */
export function checkClock(server: string, serverMs: number | undefined, nowMs: number): void {
  if (serverMs === undefined || Math.abs(serverMs - nowMs) <= MAX_CLOCK_MS) return;
  const time = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replace('T', ' ');
  const side = nowMs > serverMs ? 'ahead of' : 'behind';
  throw new CodedError(
    'clock',
    `clock: this host's clock (${time(nowMs)} UTC) is ${side} that of ${server} (${time(serverMs)} UTC), so tokens and certificates are not valid on both; set it: date -u -s "${time(serverMs)}"`,
  );
}

function exists(path: string): Promise<boolean> {
  return access(path).then(() => true, ifMissing(false));
}
