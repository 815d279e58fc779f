/** `cluster-info dump` writes objects and logs, and no file outside of its directory. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Outcome } from '../../calls.ts';
import { runClient } from '../../run-client.ts';

let server: Server;
let directory: string;
let podName = 'web';

const CORE = ['nodes:Node', 'namespaces:Namespace', 'events:Event', 'services:Service', 'pods:Pod'];
const resources = (names: readonly string[]): object[] =>
  names.map((each) => {
    const [name = '', kind = ''] = each.split(':');
    return { name, kind, namespaced: !['nodes', 'namespaces'].includes(name), verbs: ['list'] };
  });

function answerOf(path: string): object | string {
  switch (path) {
    case '/api':
      return { kind: 'APIVersions', versions: ['v1'] };
    case '/apis':
      return { kind: 'APIGroupList', groups: [{ name: 'apps', versions: [{ version: 'v1' }] }] };
    case '/api/v1':
      return {
        kind: 'APIResourceList',
        resources: resources([...CORE, 'replicationcontrollers:ReplicationController']),
      };
    case '/apis/apps/v1':
      return {
        kind: 'APIResourceList',
        resources: resources(['daemonsets:DaemonSet', 'deployments:Deployment', 'replicasets:ReplicaSet']),
      };
    case '/api/v1/namespaces':
      return { items: [{ metadata: { name: 'a' } }] };
    case '/api/v1/namespaces/a/pods': {
      const spec = { initContainers: [{ name: 'first' }], containers: [{ name: 'main' }] };
      return { items: [{ metadata: { name: podName, namespace: 'a', managedFields: [{}] }, spec }] };
    }
    default:
      return path.endsWith('/log') ? 'line\n' : { items: [] };
  }
}

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'he-dump-'));
  server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://x');
    if (url.searchParams.get('container') === 'first') {
      const status = { kind: 'Status', status: 'Failure', message: 'container first has not started', code: 400 };
      return response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(status));
    }
    const answer = answerOf(url.pathname);
    return response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});

after(async () => {
  server.closeAllConnections();
  server.close();
  await rm(directory, { recursive: true, force: true });
});

async function dump(...args: string[]): Promise<Outcome> {
  process.env['KUBECACHEDIR'] = await mkdtemp(join(directory, 'cache-'));
  const { port } = server.address() as AddressInfo;
  const connection = ['--kubeconfig', '/dev/null', '--server', `http://127.0.0.1:${port}`];
  return runClient([...connection, 'cluster-info', 'dump', ...args]);
}

const LOGS = `==== START logs for container first of pod a/web ====
Request log error: container first has not started
==== END logs for container first of pod a/web ====
==== START logs for container main of pod a/web ====
line
==== END logs for container main of pod a/web ====
`;

test('prints lists of kube-system and the namespace of the context as JSON', async () => {
  const { code, stdout, stderr } = await dump('-n', 'a');
  assert.deepEqual([code, stderr], [0, '']);
  const kinds = [...stdout.matchAll(/^ {4}"kind": "(\w+)"/gm)].map(([, kind]) => kind);
  const each = ['EventList', 'ReplicationControllerList', 'ServiceList', 'DaemonSetList', 'DeploymentList'];
  const all = [...each, 'ReplicaSetList', 'PodList'];
  assert.deepEqual(kinds, ['NodeList', ...all, ...all]);
  assert.ok(stdout.endsWith(LOGS), stdout.slice(-500));
  assert.doesNotMatch(stdout, /managedFields/);
});

test('cluster-info dump writes files, and replaces files of an earlier dump', async () => {
  const state = join(directory, 'state');
  for (let times = 0; times < 2; times += 1) {
    const { code, stdout } = await dump('-A', `--output-directory=${state}`, '-o', 'yaml');
    assert.deepEqual([code, stdout], [0, `Cluster info dumped to ${state}\n`]);
  }
  const files = (await readdir(state, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(state.length));
  const lists = ['daemonsets', 'deployments', 'events', 'pods', 'replicasets', 'replication-controllers', 'services'];
  assert.deepEqual(
    files.toSorted(),
    [...lists.map((name) => `/a/${name}.yaml`), '/a/web/logs.txt', '/nodes.yaml'].toSorted(),
  );
  assert.equal(await readFile(join(state, 'a/web/logs.txt'), 'utf8'), LOGS);
});

test('writes nothing outside of the directory for a hostile name', async () => {
  podName = '../../../outside';
  const state = join(directory, 'inner/state');
  assert.equal((await dump('--namespaces', '..,a', `--output-directory=${state}`)).code, 0);
  assert.deepEqual(
    (await readdir(directory)).filter((name) => name === 'outside'),
    [],
  );
  assert.deepEqual(await readdir(join(directory, 'inner')), ['state']);
});
