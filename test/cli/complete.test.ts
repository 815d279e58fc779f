import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runComplete } from '../../src/cli/commands/complete.ts';

const GENEROUS_MS = 200_000;

/** Values and directives for the words of a command line, the last of which is at the cursor. */
async function completed(...words: string[]): Promise<{ values: string[]; directives: string }> {
  let text = '';
  const out = {
    stdout: (more: string) => {
      text += more;
    },
    stderr: assert.fail,
  };
  await runComplete(words, out, performance.now() + GENEROUS_MS);
  const lines = text.trimEnd().split('\n');
  const directives = lines.pop() ?? '';
  return { values: lines.map((line) => line.split('\t')[0] ?? ''), directives };
}

test('completes commands, groups and verbs of the built-in client', async () => {
  const { values } = await completed('s');
  for (const word of ['scale', 'snapshot', 'status', 'sysinfo']) assert.ok(values.includes(word), word);
  assert.deepEqual(values, [...new Set(values)].sort());
  assert.ok(values.every((value) => value.startsWith('s')));
  assert.deepEqual((await completed('snapshot', 'sa')).values, ['save']);
  assert.deepEqual((await completed('doctor-p')).values, []);
  const verbs = (await completed('config', '')).values;
  for (const verb of ['check', 'show', 'schema', 'view', 'use-context']) assert.ok(verbs.includes(verb), verb);
});

test('completes flags and their values', async () => {
  assert.deepEqual((await completed('image', 'list', '--o')).values, ['--output']);
  assert.deepEqual((await completed('image', 'list', '-o', '')).values, ['json', 'yaml', 'wide']);
  assert.deepEqual((await completed('image', 'list', '--output=j')).values, ['--output=json']);
  assert.deepEqual(await completed('install', '--config', ''), { values: [], directives: ':file' });
  assert.deepEqual(await completed('install', '--root', ''), { values: [], directives: ':directory' });
  assert.deepEqual((await completed('gossip', 'keys', 'i')).values, ['install']);
  assert.deepEqual((await completed('master-restart', '--root', '/x', 'a')).values, ['api']);
  assert.deepEqual((await completed('get', '--all-n')).values, ['--all-namespaces']);
  assert.deepEqual(await completed('get', 'pods', '-o', 'jsonpath='), {
    values: ['jsonpath='],
    directives: ':prefix',
  });
  assert.deepEqual((await completed('help', 'join')).values, ['joining']);
  assert.deepEqual((await completed('doctor', '--check', 'fs')).values, ['fsync']);
  assert.deepEqual((await completed('install', '--ignore', 'memory-')).values, ['memory-cgroup']);
});

test('completes verbs of the built-in client after flags that precede them', async () => {
  assert.deepEqual((await completed('-n', 'demo', 'expo')).values, ['expose']);
  assert.deepEqual((await completed('--namespace=demo', 'get', '--all-n')).values, ['--all-namespaces']);
  assert.deepEqual((await completed('--kubeconfig', 'x', 'rollout', 'un')).values, ['undo']);
});

describe('completion of values on this host', () => {
  let root = '';
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'he-complete-'));
    const snapshots = join(root, 'var/lib/origin/snapshots');
    await mkdir(snapshots, { recursive: true });
    await writeFile(join(snapshots, 'etcd-12-20260101T000000Z.db'), '');
  });
  after(() => rm(root, { recursive: true }));

  test('completes snapshot names and other files', async () => {
    assert.deepEqual(await completed('snapshot', 'restore', '--root', root, ''), {
      values: [join(root, 'var/lib/origin/snapshots/etcd-12-20260101T000000Z.db')],
      directives: ':file',
    });
  });

  test('completes files when there are no snapshots', async () => {
    assert.deepEqual(await completed('snapshot', 'restore', '--root', join(root, 'none'), ''), {
      values: [],
      directives: ':file',
    });
  });

  test('completes components of revisions, and offers no value for an unknown component', async () => {
    assert.deepEqual((await completed('revisions', 'diff', '--root', root, 'kube-apis')).values, ['kube-apiserver']);
    assert.deepEqual((await completed('revisions', 'diff', '--root', root, 'x', '')).values, []);
    assert.deepEqual((await completed('image', 'pin', '--root', root, '')).values, []);
  });
});

describe('completion of values in the cluster', () => {
  let directory = '';
  let server: Server;
  let answers = true;
  const kubeconfig = (): string[] => ['--kubeconfig', join(directory, 'kubeconfig')];
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'he-complete-'));
    process.env['KUBECACHEDIR'] = directory;
    server = createServer((request, response) => {
      if (!answers) return;
      const { pathname } = new URL(request.url ?? '', 'http://x');
      const body = RESPONSES[pathname];
      response.statusCode = body === undefined ? 404 : 200;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(body ?? { kind: 'Status', apiVersion: 'v1', reason: 'NotFound', code: 404 }));
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const clusters = [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }];
    const contexts = [{ name: 'lab', context: { cluster: 'c', user: 'u' } }];
    const document = { clusters, contexts, users: [{ name: 'u', user: {} }], 'current-context': 'lab' };
    await writeFile(join(directory, 'kubeconfig'), JSON.stringify(document));
  });
  after(async () => {
    delete process.env['KUBECACHEDIR'];
    server.closeAllConnections();
    server.close();
    await rm(directory, { recursive: true });
  });

  test('completes types, names, namespaces, containers and contexts', async () => {
    assert.deepEqual((await completed('get', ...kubeconfig(), 'po')).values, ['pods']);
    assert.deepEqual((await completed('get', ...kubeconfig(), 'nodes,po')).values, ['nodes,pods']);
    assert.deepEqual((await completed('get', ...kubeconfig(), 'pods', '')).values, ['db-0', 'web-1']);
    assert.deepEqual((await completed('get', ...kubeconfig(), 'pods', 'db-0', '')).values, ['web-1']);
    assert.deepEqual((await completed('describe', ...kubeconfig(), 'po/w')).values, ['po/web-1']);
    assert.deepEqual((await completed('logs', ...kubeconfig(), 'w')).values, ['web-1']);
    assert.deepEqual((await completed('logs', ...kubeconfig(), 'web-1', '-c', '')).values, ['app', 'init']);
    assert.deepEqual((await completed('kubectl', ...kubeconfig(), 'get', 'pods', '-n', 'k')).values, ['kube-system']);
    assert.deepEqual((await completed('get', ...kubeconfig(), 'pods', '--namespace=k')).values, [
      '--namespace=kube-system',
    ]);
    assert.deepEqual((await completed('drain', ...kubeconfig(), '')).values, ['edge-1']);
    assert.deepEqual((await completed('config', 'use-context', ...kubeconfig(), '')).values, ['lab']);
    assert.deepEqual((await completed('rig', 'claim', ...kubeconfig(), 'b')).values, ['bench-1']);
    assert.deepEqual((await completed('rig', 'history', ...kubeconfig(), 'b')).values, ['bench-1']);
    assert.deepEqual((await completed('rig', 'recordings', ...kubeconfig(), 'b')).values, ['bench-1']);
    assert.deepEqual((await completed('rig', 'list', '--kubeconfig', '/nope', '')).values, []);
  });

  test('prints no completions when the server does not answer within the limit', async () => {
    answers = false;
    const began = performance.now();
    const out = { stdout: assert.fail, stderr: assert.fail };
    assert.equal(await runComplete(['get', ...kubeconfig(), 'pods', ''], out, began + 300), 1);
    assert.ok(performance.now() - began < 5_000);
    answers = true;
  });
});

const resource = (name: string, kind: string, group = '', scope = 'Namespaced', version = 'v1') => ({
  resource: name,
  singularResource: kind.toLowerCase(),
  responseKind: { group, version, kind },
  scope,
  verbs: ['get', 'list'],
  shortNames: name === 'pods' ? ['po'] : [],
});
const discovery = (items: object[]) => ({ kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', items });
const listOf = (...names: string[]) => ({ kind: 'List', items: names.map((name) => ({ metadata: { name } })) });
const RESPONSES: Readonly<Record<string, object>> = {
  '/api': discovery([
    {
      metadata: {},
      versions: [
        {
          version: 'v1',
          resources: [
            resource('pods', 'Pod'),
            resource('nodes', 'Node', '', 'Cluster'),
            resource('namespaces', 'Namespace', '', 'Cluster'),
          ],
        },
      ],
    },
  ]),
  '/apis': discovery([
    {
      metadata: { name: 'rig.hyperedge.dev' },
      versions: [
        { version: 'v1alpha1', resources: [resource('rigs', 'Rig', 'rig.hyperedge.dev', 'Cluster', 'v1alpha1')] },
      ],
    },
  ]),
  '/api/v1/namespaces': listOf('default', 'kube-system'),
  '/api/v1/nodes': listOf('edge-1'),
  '/api/v1/namespaces/default/pods': listOf('web-1', 'db-0'),
  '/api/v1/namespaces/default/pods/web-1': {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { name: 'web-1' },
    spec: { containers: [{ name: 'app' }], initContainers: [{ name: 'init' }] },
  },
  '/apis/rig.hyperedge.dev/v1alpha1/rigs': listOf('bench-1'),
};
