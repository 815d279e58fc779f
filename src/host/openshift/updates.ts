/** Updates of this host: the update agent with its files, and the guard that rolls a failed update back. */
import { execFile, spawn } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Architecture } from '../../api/releases/manifest.ts';
import { resources } from '../../api/resources.ts';
import type { NodeName } from '../../base/brand.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { PRODUCT_VERSION } from '../../base/versions/version.ts';
import type { InformerFactory } from '../../client/index.ts';
import { lastKnownNode } from '../../network/pods/core/index.ts';
import type { HostProber } from '../../openshift/operators/cluster-operators/index.ts';
import { UpdateAgent } from '../../openshift/updates/agent.ts';
import { runGuard } from '../../openshift/updates/guard.ts';
import {
  createExecutables,
  DigestStore,
  download,
  GUARD_LINK,
  type Masters,
} from '../../openshift/updates/io/index.ts';
import { startPeerProbes } from '../../openshift/updates/peer-probes.ts';
import type { HostExecutables, ReleaseFiles } from '../../openshift/updates/port.ts';
import type { VerifyRelease } from '../../openshift/updates/releases-port.ts';
import { NEWEST_LEVEL } from '../../store/index.ts';
import { ownsStore } from '../certificates/issue-certificates.ts';
import { canonicalRoot, type Paths, pathsBelow } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import { controlPlaneContainers } from '../control/restart-component.ts';
import { GUARD_SERVICE, SERVICE } from '../install/layout.ts';
import { systemctl, systemdRuns } from '../install/service.ts';
import type { HostRuntime } from '../node/runtime.ts';
import type { OpenedClient } from '../process/api-access.ts';
import { selfCommand } from '../process/assets.ts';
import { systemClock as clock, createProcessLog } from '../process/process.ts';
import { etcdAccess } from '../store/access.ts';
import { peerProbe } from './peer-probe.ts';

const run = promisify(execFile);
/** Time limit for saving the store. It suffices for some gigabytes on a slow disk. */
const SAVE_MS = 600_000;
const LEVEL_MS = 10_000;
/** Limit for an import, between its first file and the announcement of the release. */
const IMPORT_MS = 3_600_000;

export interface UpdatedHost {
  readonly settings: Settings;
  readonly runtime: Pick<HostRuntime, 'runtime'>;
  readonly nodeName: NodeName;
  readonly api: OpenedClient;
  readonly informers: InformerFactory;
  readonly verify: VerifyRelease;
  readonly prober: HostProber;
  readonly log: Log;
}

/** Starts the update agent of this host and its probes of other hosts. Returns a function that stops them. */
export function startUpdates(host: UpdatedHost): () => Promise<void> {
  const { settings, runtime, nodeName, api, informers, verify, prober } = host;
  const log = host.log.named('updates');
  // The service proxy uses the same informer.
  const nodes = informers.informer(resources.nodes, { lastKnown: { set: 'nodes', kept: lastKnownNode } });
  const peers = startPeerProbes({
    nodeName,
    client: api.client,
    nodes,
    clock,
    log,
    probe: peerProbe(settings, api.client),
  });
  const agent = new UpdateAgent({
    nodeName,
    running: PRODUCT_VERSION,
    architecture: process.arch as Architecture,
    keepsReleases: settings.roles.has('master'),
    timeoutMs: settings.updates.healthyWithinMs,
    client: api.client,
    informers,
    executables: executablesOf(settings.root, settings.paths),
    files: releaseFiles(settings, api, informers),
    verify,
    fault: () => {
      if (prober.report === undefined) return 'no probe yet';
      const failing = Object.entries(prober.report.probes).find(([, why]) => why !== '');
      return failing === undefined ? '' : `${failing[0]}: ${failing[1]}`;
    },
    runs: () => runsOf(runtime),
    unreached: (id) => peers.unreached(id),
    storeLevel: ownsStore(settings) ? () => storeLevel(settings) : undefined,
    readableLevel: NEWEST_LEVEL,
    saveStore: ownsStore(settings) ? (version) => saveStore(settings, version) : undefined,
    clock,
    log,
  });
  agent.start();
  return async () => {
    await Promise.all([agent.stop(), peers.stop()]);
  };
}

/** Names and IDs of the running containers of the control plane, as a text for comparisons. */
async function runsOf(runtime: Pick<HostRuntime, 'runtime'>): Promise<string> {
  const running = (await controlPlaneContainers(runtime)).filter(({ state }) => state === 'running');
  return running
    .map(({ name, id }) => `${name} ${id}`)
    .sort()
    .join(' ');
}

/** Level of the store's format, as this host's member reports it. */
export async function storeLevel({ root, ports }: Settings): Promise<number> {
  const admin = (await etcdAccess({ root })).open([`https://127.0.0.1:${ports.etcd}`]);
  try {
    return (await admin.level(LEVEL_MS)).level;
  } finally {
    admin.close();
  }
}

/** File name of the snapshot that is saved before an update from this version. */
export const snapshotName = (version: string): string => `store-${version}.db`;

/**
 * Saves a snapshot of the store in a separate process, which returns its memory when it ends. Resolves with the file
 * name. Snapshots of earlier updates are removed.
 */
async function saveStore({ root, paths }: Settings, version: string): Promise<string> {
  const directory = dirname(paths.updateRecord);
  const name = snapshotName(version);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const [file = '', ...before] = selfCommand();
  const args = [...before, 'snapshot', 'save', join(directory, name), '--root', root];
  try {
    await run(file, args, { timeout: SAVE_MS });
  } catch (error) {
    const { stderr = '' } = error as { stderr?: string };
    const why = stderr.trim().replace(/^hyperedge: /, '') || messageOf(error);
    throw new CodedError('no-snapshot', `the store was not saved before the update: ${why}`);
  }
  for (const each of await readdir(directory))
    if (/^store-.*\.db$/.test(each) && each !== name) await rm(join(directory, each), { force: true });
  return name;
}

/** URLs of the API servers of all masters, and the credentials of this node. */
export function mastersOf(api: OpenedClient, informers: InformerFactory): Masters {
  const slices = informers.informer(resources.endpointSlices, { lastKnown: { set: 'endpoint-slices' } });
  return {
    servers: async () => {
      const slice = slices.get('default/kubernetes');
      const port = slice?.ports?.find(({ name }) => name === 'https')?.port;
      const hosts = slice?.endpoints?.flatMap(({ addresses }) => addresses) ?? [];
      return hosts.map((host) => `https://${host.includes(':') ? `[${host}]` : host}:${port}`);
    },
    credentials: api.credentials,
  };
}

function releaseFiles({ paths }: Settings, api: OpenedClient, informers: InformerFactory): ReleaseFiles {
  const store = new DigestStore(paths.releases);
  const masters = mastersOf(api, informers);
  return {
    pathOf: (sha256) => store.pathOf(sha256),
    fetch: (file) => download(file, { store, ...masters }),
    retain: (digests, withdrawn) => store.retain(digests, withdrawn, clock.nowMs() - IMPORT_MS),
  };
}

/**
 * Access to the executables and the record of the update. Without systemd, `restart` only ends the host process; the
 * supervisor starts it again.
 */
export function executablesOf(root: string, paths: Paths): HostExecutables {
  const own = realpathSync(process.execPath);
  const managed = async (): Promise<boolean> => root === '/' && (await systemdRuns());
  return createExecutables({
    directory: paths.executables,
    recordFile: paths.updateRecord,
    own,
    startGuard: async () => {
      if (await managed()) {
        await systemctl('daemon-reload');
        await systemctl('--no-block', 'start', GUARD_SERVICE);
        return;
      }
      const program = join(paths.executables, GUARD_LINK);
      if (!existsSync(program)) return;
      const child = spawn(program, ['update-guard', '--root', root], {
        detached: true,
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      child.on('error', () => {});
      child.unref();
    },
    restart: async () => {
      if (await managed()) {
        await systemctl('--no-block', 'restart', SERVICE);
        return;
      }
      const pid = Number((await readFile(paths.pidFile, 'utf8').catch(() => '')).split(' ')[0]);
      if (pid > 0) process.kill(pid, 'SIGTERM');
    },
  });
}

/**
 * Runs the guard of an update (`hyperedge update-guard`). Resolves with the exit code when no update is in progress.
 */
export async function guardUpdate(root: string | undefined): Promise<number> {
  const absolute = await canonicalRoot(root);
  const log = createProcessLog('hyperedge-update-guard', 2);
  // Timers alone do not keep a process running.
  const hold = setInterval(() => {}, 1 << 30);
  try {
    await runGuard(executablesOf(absolute, pathsBelow(absolute)), clock, log);
    return 0;
  } finally {
    clearInterval(hold);
  }
}
