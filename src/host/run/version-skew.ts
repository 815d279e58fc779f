/**
 * Keeps a kubelet with an incompatible version out of a cluster. Its Node is not Ready, and the condition contains the
 * reason.
 */

import { resources } from '../../api/resources.ts';
import type { Log } from '../../base/log.ts';
import type { Timer } from '../../base/time/clock.ts';
import { KUBERNETES_VERSION } from '../../base/versions/version.ts';
import { kubeletSkew, newerKubelet } from '../../base/versions/version-skew.ts';
import type { ApiClient } from '../../client/index.ts';
import { systemClock as clock } from '../process/process.ts';

export interface VersionReport {
  /** Version of this host's kubelet. */
  readonly kubelet: string;
  /** Version of the API server; undefined until it has answered. */
  readonly apiServer: string | undefined;
  /** One line for each node whose version is not compatible with the API server's. */
  readonly skew: readonly string[];
}

export interface VersionFollower {
  /** Reason why the kubelet's version is incompatible with the API server; undefined if it is compatible or unknown. */
  notReady(): string | undefined;
  report(): Promise<VersionReport>;
  stop(): void;
}

const UNKNOWN_MS = 1_000;
/** Interval between requests of the API server's version, because a master may be upgraded while this host runs. */
const KNOWN_MS = 60_000;
const REPORT_MS = 2_000;

export function followVersions(client: ApiClient, log: Log): VersionFollower {
  const kubelet = KUBERNETES_VERSION.gitVersion;
  let apiServer: string | undefined;
  let problem: string | undefined;
  let reported: string | undefined;
  let timer: Timer | undefined;
  let stopped = false;
  const look = async (): Promise<void> => {
    let delayMs = KNOWN_MS;
    try {
      const { gitVersion = '' } = await client.request<{ gitVersion?: string }>('GET', '/version');
      apiServer = gitVersion;
      const found = kubeletSkew(kubelet, gitVersion);
      if (found !== undefined && found !== reported) log.error('unsupported version skew', { problem: found });
      reported = found;
      // An older kubelet may run, although it blocks upgrades of the cluster.
      problem = newerKubelet(kubelet, gitVersion);
    } catch {
      // The error is ignored, because the kubelet logs that the API server does not answer.
      if (apiServer === undefined) delayMs = UNKNOWN_MS;
    }
    if (!stopped) timer = clock.setTimer(delayMs, () => void look());
  };
  void look();
  return {
    notReady: () => problem,
    report: async () => ({
      kubelet,
      apiServer,
      skew:
        apiServer === undefined
          ? []
          : await nodeSkew(client, apiServer)
              .catch(() => problem ?? [])
              .then(lines),
    }),
    stop: () => {
      stopped = true;
      timer?.cancel();
    },
  };
}

const lines = (found: string | readonly string[]): readonly string[] => (typeof found === 'string' ? [found] : found);

async function nodeSkew(client: ApiClient, apiServer: string): Promise<string[]> {
  const signal = AbortSignal.timeout(REPORT_MS);
  const { items } = await client.resource(resources.nodes).list({ signal });
  return items.flatMap(({ metadata, status }) => {
    const problem = kubeletSkew(status?.nodeInfo?.kubeletVersion ?? '', apiServer);
    return problem === undefined ? [] : [`node ${metadata?.name}: ${problem}`];
  });
}
