/**
 * `requests.child.ts KUBECONFIG URL`: sends reads and writes without retries until SIGTERM, at most one of each every
 * 20 ms. It then prints a `RequestReport` as one line of JSON. Writes create config maps in the namespace default.
 */
import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';

export interface RequestReport {
  readonly requests: number;
  readonly errors: ReadonlyArray<{ readonly atMs: number; readonly what: string }>;
  /** Time from the start of the first failed request to the end of the last failed request. */
  readonly errorWindowMs: number;
  readonly slowestMs: number;
  /** Value of the label `load` of the config maps, whose names are `load-LABEL-N`. */
  readonly label: string;
  /** Numbers of acknowledged writes. */
  readonly written: readonly number[];
}

const PERIOD_MS = 20;
const TIMEOUT_MS = 5_000;
const [, , kubeconfig = '', url = ''] = process.argv;

const config = parse(await readFile(kubeconfig, 'utf8'));
const decoded = (data: string): Buffer => Buffer.from(data, 'base64');
const read = async (data: string | undefined, file: string): Promise<Buffer> =>
  data === undefined ? readFile(file) : decoded(data);
const { user } = config.users[0];
const { cluster } = config.clusters[0];
const tls = {
  ca: await read(cluster['certificate-authority-data'], cluster['certificate-authority']),
  cert: await read(user['client-certificate-data'], user['client-certificate']),
  key: await read(user['client-key-data'], user['client-key']),
};

function send(agent: Agent, method: string, path: string, body?: unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      new URL(path, url),
      { ...tls, agent, method, timeout: TIMEOUT_MS, headers: { 'content-type': 'application/json' } },
      (response) => {
        response.resume();
        response.on('end', () => {
          const { statusCode = 0 } = response;
          if (statusCode < 300) resolve();
          else reject(new Error(`status ${statusCode}`));
        });
        response.on('error', reject);
      },
    );
    outgoing.on('timeout', () => outgoing.destroy(new Error('timeout')));
    outgoing.on('error', reject);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const errors: { atMs: number; what: string }[] = [];
const written: number[] = [];
let requests = 0;
let slowestMs = 0;
let firstMs: number | undefined;
let lastMs = 0;
let stopping = false;
process.once('SIGTERM', () => {
  stopping = true;
});

async function loop(name: string, once: (count: number) => Promise<void>): Promise<void> {
  for (let count = 0; !stopping; count++) {
    const began = performance.now();
    requests += 1;
    try {
      await once(count);
    } catch (error) {
      firstMs ??= began;
      lastMs = performance.now();
      errors.push({
        atMs: Math.round(began),
        what: `${name}: ${error instanceof Error ? error.message : String(error)}`,
      });
    }
    const tookMs = performance.now() - began;
    slowestMs = Math.max(slowestMs, tookMs);
    if (tookMs < PERIOD_MS) await sleep(PERIOD_MS - tookMs);
  }
}

const agents = [new Agent({ keepAlive: true, maxSockets: 1 }), new Agent({ keepAlive: true, maxSockets: 1 })] as const;
const maps = '/api/v1/namespaces/default/configmaps';
await Promise.all([
  loop('read', () => send(agents[0], 'GET', '/api/v1/namespaces/default')),
  loop('write', async (count) => {
    await send(agents[1], 'POST', maps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `load-${process.pid}-${count}`, labels: { load: String(process.pid) } },
    });
    written.push(count);
  }),
]);
const report: RequestReport = {
  requests,
  errors,
  errorWindowMs: firstMs === undefined ? 0 : Math.round(lastMs - firstMs),
  slowestMs: Math.round(slowestMs),
  label: String(process.pid),
  written,
};
process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(0));
