/**
 * A regular client that measures its latency: `honest.child.ts '{"port":…,"path":…,"seconds":…,"fresh":…}'`, with
 * `token`, or `cert` and `key` (files). `fresh`: a new connection for each request. Prints latencies in milliseconds as
 * JSON; a failed request counts as the longest.
 */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';

interface ClientOptions {
  readonly port: number;
  readonly path: string;
  readonly seconds: number;
  readonly fresh?: boolean;
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
}

const { port, path, seconds, fresh = false, token, cert, key }: ClientOptions = JSON.parse(process.argv[2] ?? '{}');
const PAUSE_MS = 10;
const TIMEOUT_MS = 10_000;
const agent = new Agent({
  keepAlive: !fresh,
  maxSockets: 1,
  maxCachedSessions: 0,
  rejectUnauthorized: false,
  ...(cert === undefined || key === undefined ? {} : { cert: readFileSync(cert), key: readFileSync(key) }),
});
const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
const codes: Record<string, number> = {};
const note = (code: string): void => {
  codes[code] = (codes[code] ?? 0) + 1;
};

const ask = (): Promise<void> =>
  new Promise((resolve) => {
    const outgoing = request({ host: '127.0.0.1', port, path, agent, headers, timeout: TIMEOUT_MS }, (response) => {
      note(String(response.statusCode));
      response.resume();
      response.once('close', resolve);
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('timeout')));
    outgoing.on('error', (error) => {
      note((error as NodeJS.ErrnoException).code ?? error.message);
      resolve();
    });
    outgoing.end();
  });

const times: number[] = [];
const until = performance.now() + seconds * 1000;
while (performance.now() < until) {
  const began = performance.now();
  await ask();
  times.push(performance.now() - began);
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}
times.sort((left, right) => left - right);
const at = (share: number): number => Math.round((times[Math.floor((times.length - 1) * share)] ?? 0) * 100) / 100;
process.stdout.write(
  `${JSON.stringify({ p50: at(0.5), p90: at(0.9), max: at(1), count: times.length, codes })}\n`,
  () => process.exit(0),
);
