/** Updates of this host: the agent with its files, and the guard that goes back. */
import { spawn } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Architecture } from '../../api/releases/manifest.ts';
import { resources } from '../../api/resources.ts';
import type { Log } from '../../base/log.ts';
import { PRODUCT_VERSION } from '../../base/version.ts';
import type { InformerFactory } from '../../client/index.ts';
import type { HostProber } from '../../components/openshift/clusteroperators/index.ts';
import type { VerifyRelease } from '../../components/openshift/releases-port.ts';
import { runGuard, UpdateAgent } from '../../components/openshift/updates/index.ts';
import type { HostExecutables, ReleaseFiles } from '../../components/openshift/updates/port.ts';
import { createExecutables, DigestStore, download, GUARD_LINK, type Masters } from '../../io/releases/index.ts';
import type { OpenedClient } from '../api-access.ts';
import { canonicalRoot, type Paths, pathsBelow, type Settings } from '../config/settings.ts';
import { systemClock as clock, createProcessLog } from '../process.ts';
import { GUARD_SERVICE, SERVICE } from '../setup/layout.ts';
import { systemctl, systemdRuns } from '../setup/service.ts';

export interface UpdatedHost {
  readonly settings: Settings;
  readonly nodeName: string;
  readonly api: OpenedClient;
  readonly informers: InformerFactory;
  readonly verify: VerifyRelease;
  readonly prober: HostProber;
  readonly log: Log;
}

/** The function that ends it. */
export function startUpdates(host: UpdatedHost): () => Promise<void> {
  const { settings, nodeName, api, informers, verify, prober } = host;
  const log = host.log.named('updates');
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
    clock,
    log,
  });
  agent.start();
  return () => agent.stop();
}

/** API servers of all masters, with the credentials of this node. */
export function mastersOf(api: OpenedClient, informers: InformerFactory): Masters {
  const slices = informers.informer(resources.endpointSlices, { lastKnown: { set: 'endpoint-slices' } });
  return {
    servers: async () => {
      const slice = slices.get('default/kubernetes');
      const port = slice?.ports?.find(({ name }) => name === 'https')?.port;
      const hosts = slice?.endpoints.flatMap(({ addresses }) => addresses) ?? [];
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
    retain: (digests) => store.retain(digests),
  };
}

/** `restart` without a service manager: the supervisor starts a host process that has ended. */
function executablesOf(root: string, paths: Paths): HostExecutables {
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

/** `hyperedge update-guard`. Resolves with the exit code when no update is under way any more. */
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
