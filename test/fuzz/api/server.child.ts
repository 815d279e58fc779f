/**
 * The fuzzed API server in a process of its own, with the store at the given address. Reports about itself over IPC.
 */

import { createHttp } from '../../../src/apiserver/io/http/index.ts';
import type { HttpPort } from '../../../src/apiserver/port.ts';
import { createLog } from '../../../src/base/log.ts';
import { startServer } from '../../apiserver/harness.ts';
import { connect } from '../../store/harness.ts';
import { Observer } from './observer.ts';

const [endpoint = '', index = 'x-input'] = process.argv.slice(2);
const observer = new Observer();
const failed: string[] = [];
const MAX_FAILED = 200;

const log = createLog({
  component: 'api',
  level: 0,
  least: 'error',
  sink: { write: (line) => failed.length < MAX_FAILED && failed.push(line) },
  nowMs: Date.now,
});

/** The real HTTP port, which records every request before it is handled. */
function noted(http: HttpPort): HttpPort {
  return {
    backends: http.backends,
    listen: (options) =>
      http.listen({
        ...options,
        request: (request, response, connection) => {
          const input = request.headers[index];
          if (typeof input === 'string') observer.arrived(input);
          options.request(request, response, connection);
        },
      }),
  };
}

const server = await startServer({
  store: connect(endpoint, undefined),
  log,
  http: noted(createHttp()),
  config: {
    compactionIntervalSeconds: 2,
    requestTimeoutSeconds: 20,
    runtimeConfig: new Map([['api/all', true]]),
  },
});
const user = await server.user('mallory', 'nobodies');

function memory(): { heapBytes: number; residentBytes: number } {
  (globalThis as { gc?: () => void }).gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return { heapBytes: heapUsed + external, residentBytes: process.memoryUsage.rss() };
}

process.on('message', (question) => {
  // Entries of garbage collections are delivered one turn later.
  setTimeout(() => {
    if (question === 'take') process.send?.({ ...observer.take(), failed: failed.splice(0), ...memory() });
    else void server.stop().then(() => process.exit(0));
  }, 20);
});
process.on('disconnect', () => process.exit(1));
observer.start();
process.send?.({ port: server.port, ca: server.ca.certPem, admin: server.admin, user });
