/** `debug` waits for its container; the objects that it makes are compared with those of kubectl in the scenario `debug`. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Outcome } from '../../calls.ts';
import { runClient } from '../../run-client.ts';

const LIST = '/api/v1/namespaces/default/pods';

let server: Server;
let directory: string;
let patched: string[] = [];
/** Status of the debug container of a pod at its n-th read. */
let stateAt: (pod: string, reads: number) => object;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'he-debug-'));
  const reads = new Map<string, number>();
  const added = new Map<string, { name: string }[]>();
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://x');
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => {
      body += part;
    });
    request.on('end', () => {
      const [, pod = '', sub = ''] = /\/pods\/([^/]+)(?:\/(.*))?$/.exec(pathname) ?? [];
      response.setHeader('content-type', 'application/json');
      if (sub === 'log') return response.setHeader('content-type', 'text/plain').end(`log of ${pod}\n`);
      if (request.method === 'PATCH') {
        patched.push(pod);
        added.set(pod, JSON.parse(body).spec.ephemeralContainers);
      }
      const name = added.get(pod)?.[0]?.name;
      const count = (reads.get(pod) ?? 0) + (name === undefined || request.method === 'PATCH' ? 0 : 1);
      reads.set(pod, count);
      const status = name === undefined ? {} : { ephemeralContainerStatuses: [{ name, state: stateAt(pod, count) }] };
      const answers: Readonly<Record<string, object>> = {
        '/api': { kind: 'APIVersions', versions: ['v1'] },
        '/apis': { kind: 'APIGroupList', groups: [] },
        '/api/v1': {
          kind: 'APIResourceList',
          resources: [{ name: 'pods', kind: 'Pod', namespaced: true, verbs: ['get', 'list'] }],
        },
      };
      const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: pod, namespace: 'default' }, spec: {}, status };
      return response.end(JSON.stringify(answers[pathname] ?? (pathname.startsWith(LIST) ? object : {})));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});

after(async () => {
  server.closeAllConnections();
  server.close();
  await rm(directory, { recursive: true, force: true });
});

async function debug(...args: string[]): Promise<Outcome> {
  patched = [];
  process.env['KUBECACHEDIR'] = await mkdtemp(join(directory, 'cache-'));
  const { port } = server.address() as AddressInfo;
  const connection = ['--kubeconfig', '/dev/null', '--server', `http://127.0.0.1:${port}`];
  return runClient([...connection, 'debug', ...args, '--image=d:1', '--attach', '--quiet']);
}

test('waits for the debug container of each pod, and prints the log of a container that has terminated', async () => {
  stateAt = (_, reads) => (reads < 2 ? { waiting: { reason: 'Pulling' } } : { terminated: { exitCode: 0 } });
  const { code, stdout, stderr } = await debug('one', 'two');
  assert.deepEqual([code, stdout, stderr], [0, 'log of one\nlog of two\n', '']);
  assert.deepEqual(patched, ['one', 'two']);
});
