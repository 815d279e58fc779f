/** Usage history of a host: counters of the machine and of the components on it, stored in files. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import type { Log } from '../../base/log.ts';
import { readApiCounters, readStoreCounters } from '../../kubelet/history/core/component-metrics.ts';
import type { ComponentCounters } from '../../kubelet/history/port.ts';
import type { HistoryDeps } from '../../kubelet/history/recorder.ts';
import { createHistoryFiles, createHostCounters } from '../../kubelet/io/history/index.ts';
import { masterFiles, type PairFiles } from '../../pki/index.ts';
import { ownsStore } from '../certificates/issue-certificates.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process/process.ts';

const TIMEOUT_MS = 5_000;
const MAX_BYTES = 16 * 1024 * 1024;

/** `state`: directory in which the kubelet keeps its state. */
export function historyDeps(settings: Settings, state: string, log: Log): HistoryDeps {
  return {
    files: createHistoryFiles(join(state, 'usage-history')),
    host: {
      counters: createHostCounters({ root: '/', monotonicMs: () => clock.monotonicMs() }),
      components: () => componentCounters(settings, log),
    },
  };
}

/** Counters from the metrics of the API server and the store; undefined for a component that is starting or stopped. */
async function componentCounters(settings: Settings, log: Log): Promise<ComponentCounters> {
  if (!settings.roles.has('master')) return { api: undefined, store: undefined };
  const files = masterFiles(settings.root);
  const read = (what: string, port: number, ca: string, pair: PairFiles): Promise<string | undefined> =>
    metricsOf(`https://127.0.0.1:${port}/metrics`, ca, pair).catch((error: unknown) => {
      log.v(4, 'metrics not read', { component: what, error: String(error) });
      return undefined;
    });
  const [api, store] = await Promise.all([
    read('api', settings.ports.api, files.caBundle, files.admin),
    ownsStore(settings) ? read('etcd', settings.ports.etcd, files.etcdCa, files.etcdClient) : undefined,
  ]);
  return {
    api: api === undefined ? undefined : readApiCounters(api),
    store: store === undefined ? undefined : readStoreCounters(store),
    isStoreSilent: store === undefined && ownsStore(settings),
  };
}

async function metricsOf(url: string, caFile: string, pair: PairFiles): Promise<string> {
  const [ca, cert, key] = await Promise.all([readFile(caFile), readFile(pair.cert), readFile(pair.key)]);
  // Each request opens a connection, because certificates are renewed and one handshake per minute costs little.
  const dispatcher = new Agent({ connect: { ca, cert, key }, maxResponseSize: MAX_BYTES });
  try {
    const { statusCode, body } = await request(url, { dispatcher, signal: AbortSignal.timeout(TIMEOUT_MS) });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${url}: status ${statusCode}`);
    return text;
  } finally {
    await dispatcher.destroy();
  }
}
