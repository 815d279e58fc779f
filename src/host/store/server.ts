/** `hyperedge etcd`: server of etcd's API with SQLite as storage. */
import { access, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CodedError, ifMissing, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { PRODUCT_VERSION } from '../../base/versions/version.ts';
import { createGossipHints } from '../../gossip/agent/index.ts';
import { processFacts } from '../../kubelet/io/host-facts/index.ts';
import { parseSwitchRecord, snapshotAfterRollback } from '../../openshift/updates/core/port.ts';
import { completeFallback, createFallback, type FallbackOptions } from '../../store/administration/fallback.ts';
import { recoverMark } from '../../store/administration/recover.ts';
import { createPeerDialer } from '../../store/client/peer-dialer.ts';
import { type EtcdSettings, type EtcdUrl, isSecure } from '../../store/config/index.ts';
import { createSqliteLog } from '../../store/disk/index.ts';
import { createEtcdServer, createTokens, type EtcdServerDeps, type Fallback } from '../../store/index.ts';
import {
  combineListeners,
  createRpcListener,
  type RpcListenerOptions,
  type TlsMaterials,
  type TlsSource,
} from '../../wire/grpc/index.ts';
import { atTurnEnd } from '../../wire/http2/turn-end.ts';
import { readReferenced, readSecret } from '../config/files.ts';
import type { Component } from '../controllers/server.ts';
import { openAssets } from '../process/assets.ts';
import { systemClock as clock } from '../process/process.ts';
import { storeFiles } from './store-files.ts';
import { openTlsFiles, withOwnCertificate } from './tls.ts';

export interface EtcdStart {
  readonly settings: EtcdSettings;
  /** Whether private keys that other users can read are rejected instead of logged. */
  readonly strictKeys: boolean;
  readonly log: Log;
  /** Socket of the gossip agent; undefined disables gossip. */
  readonly agentSocket: string | undefined;
  /** Directory of snapshots from which a damaged store is restored. Undefined disables the restoration. */
  readonly snapshots: string | undefined;
  /** Path of the record of this host's last update; undefined if the host process does not manage the store. */
  readonly updateRecord: string | undefined;
  /** Recorded ID of the cluster to which this host's store belongs; undefined if none is recorded. */
  readonly formerCluster: string | undefined;
  readonly onFatal: (error: Error) => void;
}

/** Default limit of the database size, as in etcd. Source: etcd storage/quota.go. */
const DEFAULT_QUOTA = 2 * 1024 ** 3;
/** Maximum size of a message between peers, such as a piece of a snapshot or an entry of the log. */
const PEER_MESSAGE_BYTES = 16 << 20;
/** Bytes by which a gRPC message may exceed the limit for requests. Source: etcd server/embed, grpcOverheadBytes. */
const REQUEST_OVERHEAD_BYTES = 512 << 10;
const NO_PATHS: ReadonlySet<string> = new Set();
const METRICS_PATHS: ReadonlySet<string> = new Set(['/metrics', '/health', '/livez', '/readyz']);
/** Maximum number of concurrent streams per connection. */
const MAX_STREAMS = 4096;

/** Starts the store. Throws CodedErrors with the file, the address or the data directory. */
export async function startEtcd({
  settings,
  strictKeys,
  log,
  agentSocket,
  snapshots,
  updateRecord,
  formerCluster,
  onFatal,
}: EtcdStart): Promise<Component> {
  const assets = await openAssets();
  const { name, dataDirectory: directory } = settings;
  const storage = createSqliteLog({
    directory,
    nativeBinding: assets.sqliteAddon,
    flush: !settings.unsafeNoFsync,
    log: log.named('sqlite'),
  });
  await completeFallback(directory, storage);
  await beginDirectory(settings);
  const source = await clientTlsOf(settings, strictKeys, log);
  const [first, ...others] = listenersOf(settings, source, log).map(createRpcListener);
  if (first === undefined) throw new CodedError('bad-config', 'no address to listen on; give --listen-client-urls');
  const tokens = await createTokens(
    settings.auth.token,
    clock,
    (path, kind) =>
      kind === 'public'
        ? readReferenced(path, '--auth-token')
        : readSecret(path, '--auth-token', strictKeys ? undefined : (problem) => log.warn(problem)),
    settings.auth.simpleTokenTtlSeconds * 1000,
  );
  const listener = combineListeners([first, ...others]);
  const server = createEtcdServer({
    storage,
    listener,
    ...(snapshots === undefined ? {} : { fallback: fallbackOf(settings, { storage, snapshots, log }) }),
    ...(formerCluster === undefined ? {} : { formerCluster: { id: formerCluster, dataDirectory: directory } }),
    ...(updateRecord === undefined
      ? {}
      : { levelOnRequest: true, beforeUpdate: () => beforeUpdate(settings, updateRecord, { storage, log }) }),
    ...(await peering(settings, { strictKeys, joins: strictKeys, directory, log })),
    timing: settings.raft,
    ...(settings.quotaBytes < 0 ? {} : { quotaBytes: settings.quotaBytes === 0 ? DEFAULT_QUOTA : settings.quotaBytes }),
    ...(settings.compaction === undefined ? {} : { compaction: settings.compaction }),
    ...(agentSocket === undefined
      ? {}
      : { gossip: createGossipHints({ socket: agentSocket, clock, log: log.named('gossip') }) }),
    strictReconfigCheck: settings.cluster.strictReconfigCheck,
    maxLearners: settings.cluster.maxLearners,
    limits: settings.limits,
    ...(settings.progressNotifyMs > 0 ? { progressNotifyMs: settings.progressNotifyMs } : {}),
    jsonGateway: settings.jsonGateway,
    ...(settings.limits.concurrentStreams < MAX_STREAMS ? { gatewayStreams: settings.limits.concurrentStreams } : {}),
    ...(await forceNewCluster(settings)),
    slow: settings.slow,
    extensiveMetrics: settings.extensiveMetrics,
    processFacts,
    compareMs: settings.corruption.intervalMs,
    compareAtStart: settings.corruption.checkAtStart,
    defer: atTurnEnd,
    clock,
    log,
    name,
    clientUrls: settings.advertise.client,
    peerUrls: settings.advertise.peer,
    tokens,
    onPublished: () => logServing(settings, listener.addresses, log),
    clientCertAuth: settings.auth.byCertificate,
    bcryptCost: settings.auth.bcryptCost,
    onFatal,
  });
  try {
    await server.start();
  } catch (error) {
    // The data directory is emptied again, so that a snapshot can be restored or a file system mounted there.
    if (error instanceof CodedError && error.code === 'store-missing') await removeEmptyStore(directory);
    throw error;
  }
  return { stop: () => server.stop() };
}

/** Logs the messages of etcd on which tools wait. */
function logServing(
  settings: EtcdSettings,
  addresses: readonly { readonly host: string; readonly port: number }[],
  log: Log,
): void {
  for (const [index, { urls }] of listeningOf(settings).entries()) {
    for (const url of urls) {
      const { host, port } = addresses[index] ?? url;
      const where = url.path ?? (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`);
      log.info(`serving ${isSecure(url) ? '' : 'insecure '}client requests on ${where}`);
    }
  }
  log.info('ready to serve client requests', { name: settings.name, data: settings.dataDirectory });
}

function fallbackOf(
  { dataDirectory, name, advertise, cluster }: EtcdSettings,
  context: Pick<FallbackOptions, 'storage' | 'snapshots' | 'log'>,
): Fallback {
  const { peer: peerUrls } = advertise;
  return createFallback({
    ...context,
    files: storeFiles,
    dataDirectory,
    name,
    peerUrls,
    token: cluster.token,
    nowMs: clock.nowMs,
  });
}

async function removeEmptyStore(directory: string): Promise<void> {
  for (const name of await readdir(directory))
    if (name.startsWith('revisions.db') || name === 'owner') await rm(join(directory, name), { force: true });
}

/**
 * Restoration of the snapshot that was saved before an update, if the update was rolled back to this release; otherwise
 * undefined.
 */
async function beforeUpdate(
  settings: EtcdSettings,
  recordFile: string,
  context: Pick<FallbackOptions, 'storage' | 'log'>,
): Promise<Fallback | undefined> {
  const record = parseSwitchRecord(await readFile(recordFile, 'utf8').catch(ifMissing(undefined)), recordFile);
  const snapshot = snapshotAfterRollback(record, PRODUCT_VERSION);
  if (snapshot === undefined) return undefined;
  return fallbackOf(settings, { ...context, snapshots: { only: join(dirname(recordFile), snapshot) } });
}

async function beginDirectory(settings: EtcdSettings): Promise<void> {
  const directory = settings.dataDirectory;
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new CodedError('unwritable', `cannot make the data directory ${directory}: ${messageOf(error)}`, {
      cause: error,
    });
  }
  await checkDataDirectory(settings);
}

async function clientTlsOf(settings: EtcdSettings, strictKeys: boolean, log: Log): Promise<TlsSource | undefined> {
  const { listen, tls, dataDirectory } = settings;
  const withFiles = await withOwnCertificate(
    tls.client,
    join(dataDirectory, 'fixtures', 'client'),
    hostsOf([...listen.client, ...listen.clientHttp, ...listen.metrics]),
    tls.limits.selfSignedYears,
    clock.nowMs(),
  );
  return openTlsFiles({ tls: withFiles, limits: tls.limits, strictKeys, nowMs: clock.nowMs, log });
}

/**
 * Whether the member must form a new cluster: at every start with etcd's flag, or once if `members recover` has written
 * a marker file.
 */
async function forceNewCluster({
  cluster,
  dataDirectory,
}: EtcdSettings): Promise<Pick<EtcdServerDeps, 'forceNewCluster'>> {
  const recoveryMark = recoverMark(dataDirectory);
  const once = await access(recoveryMark).then(
    () => true,
    () => false,
  );
  return once || cluster.forceNew ? { forceNewCluster: () => rm(recoveryMark, { force: true }) } : {};
}

interface Peering {
  readonly strictKeys: boolean;
  /** Whether a host that is not a member requests to be added. With etcd's flags, an administrator must add it. */
  readonly joins: boolean;
  readonly directory: string;
  readonly log: Log;
}

/**
 * Whether one authority issues the certificates of clients and of members. In this case, peers must reject certificates
 * for clients only: the permissions of a client's user are limited, but a member has none that limit it. The check
 * requires that members use one certificate both as server and as client.
 */
function sharesAuthority({ client, peer }: EtcdSettings['tls']): boolean {
  const isOwn = peer.clientCertFile === undefined || peer.clientCertFile === peer.certFile;
  return isOwn && peer.trustedCaFile !== undefined && peer.trustedCaFile === client.trustedCaFile;
}

/** Creates the listener for peers and the dialer to them. */
async function peering(
  settings: EtcdSettings,
  { strictKeys, joins, directory, log }: Peering,
): Promise<Pick<EtcdServerDeps, 'peers' | 'initialCluster'>> {
  const { listen, tls, cluster } = settings;
  const [first, ...others] = listen.peer;
  if (first === undefined) return {};
  const hosts = hostsOf(listen.peer);
  const years = tls.limits.selfSignedYears;
  const files = await withOwnCertificate(tls.peer, join(directory, 'fixtures', 'peer'), hosts, years, clock.nowMs());
  // All members run hyperedge, so peers do not need older TLS versions.
  const limits = { ...tls.limits, minVersion: 'TLSv1.3', maxVersion: 'TLSv1.3' } as const;
  const membersOnly = sharesAuthority(tls);
  const source = await openTlsFiles({ tls: files, limits, strictKeys, membersOnly, nowMs: clock.nowMs, log });
  const at = (url: EtcdUrl): RpcListenerOptions => ({
    host: url.host,
    port: url.port,
    ...(url.path === undefined ? {} : { path: url.path }),
    ...(isSecure(url) && source !== undefined ? { tls: source } : {}),
    maxMessageBytes: PEER_MESSAGE_BYTES,
    log,
  });
  const listener = combineListeners([createRpcListener(at(first)), ...others.map((url) => createRpcListener(at(url)))]);
  const own = await openTlsFiles({
    tls: {
      ...files,
      certFile: files.clientCertFile ?? files.certFile,
      keyFile: files.clientKeyFile ?? files.keyFile,
      requireCertificate: !files.automatic,
    },
    limits,
    strictKeys,
    nowMs: clock.nowMs,
    log,
  });
  const dial = createPeerDialer({
    log: log.named('peers'),
    clock,
    ...(own === undefined ? {} : { materials: await latestOf(own) }),
    anyServer: files.automatic,
  });
  return {
    peers: { listener, dial },
    initialCluster: {
      members: cluster.members,
      token: cluster.token,
      existing: cluster.state === 'existing',
      joins,
    },
  };
}

/**
 * Returns a function that returns the last read certificates without waiting. Each call also starts a check for changed
 * files.
 */
async function latestOf(
  source: TlsSource,
): Promise<() => Pick<TlsMaterials, 'cert' | 'key'> & { ca?: string | Buffer | string[] }> {
  let latest = await source.current();
  return () => {
    void source.current().then((current) => {
      latest = current;
    });
    const { cert, key, ca } = latest;
    if (ca === undefined) return { cert, key };
    return { cert, key, ca: typeof ca === 'string' || Buffer.isBuffer(ca) ? ca : [...ca] };
  };
}

/**
 * Checks a new data directory. Throws CodedErrors for invalid bootstrap settings and for a directory with files of
 * etcd.
 */
async function checkDataDirectory({ dataDirectory, cluster }: EtcdSettings): Promise<void> {
  const holds = (path: string): Promise<boolean> =>
    stat(join(dataDirectory, path)).then(
      () => true,
      () => false,
    );
  if (await holds('revisions.db')) return;
  if (await holds('member')) {
    throw new CodedError(
      'bad-config',
      `${dataDirectory} holds the data of another etcd, whose file format is not supported; name another --data-dir`,
    );
  }
  if (cluster.bootstrapProblem !== undefined) throw new CodedError('bad-config', cluster.bootstrapProblem);
}

/** Host names and addresses of a self-signed certificate. */
function hostsOf(urls: readonly EtcdUrl[]): string[] {
  const named = urls.map((url) => url.host).filter((host) => host !== '' && host !== '0.0.0.0' && host !== '::');
  return [...new Set([...named, 'localhost', '127.0.0.1', '::1'])];
}

/** Services of one listener. A listener has one address and serves it with TLS, without TLS, or both. */
interface Listening {
  readonly urls: readonly [EtcdUrl, ...EtcdUrl[]];
  readonly serves: Pick<RpcListenerOptions, 'grpc' | 'httpPaths'>;
}

function listeningOf({ listen }: EtcdSettings): Listening[] {
  const apart = listen.clientHttp.length > 0;
  return [
    ...withTwins(listen.client, apart ? { httpPaths: NO_PATHS } : {}),
    ...withTwins(listen.clientHttp, { grpc: false }),
    ...withTwins(listen.metrics, { grpc: false, httpPaths: METRICS_PATHS }),
  ];
}

function withTwins(urls: readonly EtcdUrl[], serves: Listening['serves']): Listening[] {
  // Port 0 selects a different free port for each URL, so these URLs are never combined.
  const key = (url: EtcdUrl): unknown => url.path ?? (url.port === 0 ? url : `${url.host}:${url.port}`);
  return [...Map.groupBy(urls, key).values()].map((same) => ({ urls: same as [EtcdUrl, ...EtcdUrl[]], serves }));
}

function listenersOf(settings: EtcdSettings, source: TlsSource | undefined, log: Log): RpcListenerOptions[] {
  const { listen, limits, keepAlive, hostWhitelist } = settings;
  return listeningOf(settings).map(({ urls, serves }) => {
    const [{ host, port, path }] = urls;
    const secure = urls.some(isSecure);
    return {
      host,
      port,
      ...(path === undefined ? {} : { path }),
      ...(secure && source !== undefined ? { tls: source, alsoInTheClear: !urls.every(isSecure) } : {}),
      ...(hostWhitelist === undefined ? {} : { httpHosts: hostWhitelist }),
      maxStreams: Math.min(limits.concurrentStreams, MAX_STREAMS),
      // The limit exceeds that of requests, so that the KV service can reject a larger request with etcd's message.
      maxMessageBytes: limits.requestBytes + REQUEST_OVERHEAD_BYTES,
      keepAlive,
      reusePort: listen.reusePort,
      log,
      ...serves,
    };
  });
}
