/** Hosts without power: their requests fail fast, they are shown as down, and their old usage is not shown. */
import assert from 'node:assert/strict';
import { beforeEach, suite, test } from 'node:test';
import type { Node } from '../../../../src/api/generated/core/v1.ts';
import { isApiError } from '../../../../src/api/meta/status.ts';
import { HOST_DEADLINE_MS } from '../../../../src/console/data/api/api.ts';
import { clusterHealth } from '../../../../src/console/data/health.ts';
import { firstStore, readSnapshots } from '../../../../src/console/data/hosts/administration.ts';
import { answering, lostHosts, readRenewals } from '../../../../src/console/data/hosts/contact.ts';
import { readFlushTimes } from '../../../../src/console/data/hosts/flush-times.ts';
import { readHistory } from '../../../../src/console/data/hosts/history.ts';
import { readRestarts } from '../../../../src/console/data/hosts/restart.ts';
import { currentUsage, type Usage } from '../../../../src/console/data/hosts/usage.ts';
import { type Answer, FakeApi, json } from '../fake-api.ts';

const HEARTBEAT = '2026-01-02T03:00:00Z';
const MESSAGE = 'The gossip ring reports that the host failed.';

const node = (name: string, status: 'True' | 'Unknown', labels: Record<string, string> = {}): Node => ({
  metadata: { name, labels },
  status: {
    conditions: [{ type: 'Ready', status, reason: 'r', message: MESSAGE, lastHeartbeatTime: HEARTBEAT }],
  },
});
const NODES = [
  node('n1', 'True'),
  node('n2', 'Unknown'),
  node('m1', 'Unknown', { 'node-role.kubernetes.io/master': '' }),
];

/** A response that never arrives, as of the proxy of a node without power. The request ends with its signal. */
const silence: Answer = (_, { signal }) =>
  new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason as Error));
  });

suite('requests to a host without power', () => {
  let server: FakeApi;
  let page: AbortController;
  beforeEach(() => {
    server = new FakeApi();
    server.answer = silence;
    page = new AbortController();
  });

  const history = { metrics: ['cpu'], since: '1h' } as const;
  const reads: Readonly<Record<string, (signal: AbortSignal) => Promise<unknown>>> = {
    history: (signal) => readHistory(server.api, 'n2', history, signal),
    snapshots: (signal) => readSnapshots(server.api, 'n2', signal),
    restarts: (signal) => readRestarts(server.api, 'n2', signal),
  };
  for (const [name, read] of Object.entries(reads))
    test(`requests to a host without power fail after the deadline with a fix: ${name}`, async () => {
      const outcome = read(page.signal).catch((error: unknown) => error);
      await server.clock.advance(HOST_DEADLINE_MS - 1);
      assert.equal(server.clock.pendingTimers, 1);
      await server.clock.advance(1);
      const error = await outcome;
      assert.ok(isApiError(error, 'Timeout'));
      assert.match(error.message, /^node n2 does not answer within 6 s; check the power and the network of the host$/);
      assert.equal(server.requests[0]?.request.signal?.aborted, true);
    });

  test('requests to a host without power are cancelled when the page closes, and leave no timer', async () => {
    const outcome = readHistory(server.api, 'n2', history, page.signal).catch((error: unknown) => error);
    await server.clock.advance(1);
    page.abort(new Error('left'));
    assert.equal(((await outcome) as Error).message, 'left');
    assert.equal(server.clock.pendingTimers, 0);
  });

  test('requests to a host without power do not delay the data of the hosts that answer', async () => {
    const sample = { unit: 'seconds', average: [1], max: [1] };
    const body = { from: HEARTBEAT, stepSeconds: 30, series: [{ metrics: { storeLatency: sample } }] };
    server.answer = (url, request) => (url.pathname.includes('/n1/') ? json(body) : silence(url, request));
    const flushes = readFlushTimes(server.api, ['n1', 'n2'], '1h', page.signal);
    await server.clock.advance(HOST_DEADLINE_MS);
    assert.deepEqual((await flushes)?.metrics.get('n1')?.average, [1]);
    server.answer = silence;
    const store = firstStore(server.api, server.clock, ['n1', 'n2'], page.signal);
    await server.clock.advance(2 * HOST_DEADLINE_MS);
    const found = await store;
    assert.match('error' in found ? found.error : '', /does not answer within 6 s/);
  });
});

suite('hosts that do not answer', () => {
  test('hosts that do not answer are named with the last contact and a fix', () => {
    const renewed = '2026-01-02T03:04:00.000000Z';
    const hosts = lostHosts(NODES, new Map([['n2', renewed]]));
    assert.deepEqual(
      hosts.map(({ name, lastContact, detail }) => [name, lastContact, detail]),
      [
        ['n2', renewed, MESSAGE],
        ['m1', HEARTBEAT, MESSAGE],
      ],
    );
    assert.match(hosts[0]?.fix ?? '', /^Check the power .* remove it with "kubectl delete node n2"\.$/);
    assert.match(hosts[1]?.fix ?? '', /replace its member of the store/);
    const never = { metadata: { name: 'n3' }, status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } };
    assert.equal(lostHosts([never as Node], new Map([['n3', 'soon']]))[0]?.lastContact, '');
    assert.deepEqual(
      answering(NODES).map(({ metadata }) => metadata?.name),
      ['n1'],
    );
  });

  test('hosts that do not answer are problems of the cluster, and their last usage is not shown', () => {
    const { level, problems } = clusterHealth({ nodes: NODES, pods: [], operators: [] });
    assert.equal(level, 'error');
    assert.deepEqual(
      problems.map(({ title, link }) => [title, link]),
      [
        ['Node n2 does not answer.', '/nodes/n2'],
        ['Node m1 does not answer.', '/nodes/m1'],
      ],
    );
    const usage: Usage[] = ['n1', 'n2'].map((name) => ({ name, namespace: '', cpu: 1, memory: 1 }));
    assert.deepEqual(
      currentUsage(usage, NODES).map(({ name }) => name),
      ['n1'],
    );
  });

  test('the last contact of a host that does not answer is read from its lease, if the user may read the lease', async () => {
    const server = new FakeApi();
    const { signal } = new AbortController();
    server.answer = (url) =>
      url.pathname.endsWith('/n2') ? json({ spec: { renewTime: HEARTBEAT } }) : json({ message: 'forbidden' }, 403);
    assert.deepEqual([...(await readRenewals(server.api, ['n2', 'm1'], signal))], [['n2', HEARTBEAT]]);
    assert.equal(server.requests[0]?.url.pathname, '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2');
  });
});
