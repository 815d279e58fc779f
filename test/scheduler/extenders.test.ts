/** Scheduler with an HTTP extender that responds like a Go program: preemption and binding. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { Pod } from '../../src/api/generated/core/v1.ts';
import { resources } from '../../src/api/resources.ts';
import { DEFAULT_PROFILE } from '../../src/scheduler/core/profile.ts';
import type { ExtenderSettings } from '../../src/scheduler/extender-port.ts';
import { createExtenderCaller } from '../../src/scheduler/io/extenders/index.ts';
import { type ControlPlane, eventually, startControlPlane } from '../controllers/harness.ts';

type Answer = (body: Record<string, unknown>) => unknown;

const namespace = 'default';
const BOARD = 'example.com/board';
const LAMP = 'example.com/lamp';
const answers: Record<string, Answer> = {};
const requested: { readonly verb: string; readonly body: Record<string, unknown> }[] = [];
const caller = createExtenderCaller();
let server: Server;
let plane: ControlPlane;

before(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const verb = request.url?.split('/').at(-1) ?? '';
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>;
    requested.push({ verb, body });
    const answer = await answers[verb]?.(body);
    response.writeHead(answer === undefined ? 500 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const urlPrefix = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const common = { urlPrefix, weight: 1, timeoutMs: 5_000, ignorable: false, tls: undefined };
  const extenders: ExtenderSettings[] = [
    { ...common, preemptVerb: 'preempt', nodeCacheCapable: true, managedResources: [BOARD] },
    { ...common, bindVerb: 'bind', nodeCacheCapable: false, managedResources: [LAMP] },
  ];
  const settings = { profiles: [DEFAULT_PROFILE], extenders, initialBackoffMs: 100, maxBackoffMs: 500 };
  plane = await startControlPlane({ kubelets: false, scheduler: { settings, extenders: caller } });
  for (const name of ['n1', 'n2']) {
    await plane.addNode(name, ({ status }) => {
      for (const amounts of [status?.allocatable, status?.capacity]) {
        if (amounts !== undefined) Object.assign(amounts, { [BOARD]: '1', [LAMP]: '1' });
      }
    });
  }
  for (const [name, value] of [
    ['low', 1],
    ['middle', 5],
    ['high', 100],
  ] as const) {
    await plane.of(resources.priorityClasses).create({ metadata: { name }, value });
  }
});
after(async () => {
  await plane.stop();
  await caller.close();
  server.close();
});

const pods = () => plane.of(resources.pods);
const create = (name: string, resource: string, priorityClassName: string, nodeName?: string): Promise<Pod> =>
  pods().create({
    metadata: { name, namespace },
    spec: {
      priorityClassName,
      terminationGracePeriodSeconds: 1,
      ...(nodeName === undefined ? {} : { nodeSelector: { 'kubernetes.io/hostname': nodeName } }),
      containers: [
        { name: 'c', image: 'i', resources: { requests: { [resource]: '1' }, limits: { [resource]: '1' } } },
      ],
    },
  });
const read = (name: string) => pods().get(name, namespace);
const bound = (name: string) => eventually(async () => (await read(name)).spec?.nodeName, `${name} on a node`);
const remove = (name: string) => pods().delete(name, namespace, { gracePeriodSeconds: 0 });
const condition = async (name: string) =>
  (await read(name)).status?.conditions?.find(({ type }) => type === 'PodScheduled');

test('an extender selects the node on which preemption evicts pods', async () => {
  const first = await create('first', BOARD, 'low', 'n1');
  const second = await create('second', BOARD, 'middle', 'n2');
  assert.deepEqual([await bound('first'), await bound('second')], ['n1', 'n2']);
  // Without the extender, the victim with the lower priority would be evicted, which is on n1.
  answers['preempt'] = () => ({
    NodeNameToMetaVictims: { n2: { Pods: [{ UID: second.metadata?.uid }], NumPDBViolations: 0 } },
  });
  await create('urgent', BOARD, 'high');
  await eventually(async () => (await read('second')).metadata?.deletionTimestamp !== undefined, 'the victim leaving');
  assert.equal((await read('first')).metadata?.deletionTimestamp, undefined);
  const { body } = requested.find(({ verb }) => verb === 'preempt') ?? {};
  assert.equal((body?.['Pod'] as Pod | undefined)?.metadata?.name, 'urgent');
  assert.deepEqual(body?.['NodeNameToMetaVictims'], {
    n1: { Pods: [{ UID: first.metadata?.uid }], NumPDBViolations: 0 },
    n2: { Pods: [{ UID: second.metadata?.uid }], NumPDBViolations: 0 },
  });
  await remove('second');
  assert.equal(await bound('urgent'), 'n2');
  for (const name of ['first', 'urgent']) await remove(name);
});

test("evicts no pod if the extender's response lists no victims or victims of another node", async () => {
  const victim = await create('kept', BOARD, 'low', 'n1');
  const other = await create('other', BOARD, 'low', 'n2');
  await bound('kept');
  await bound('other');
  answers['preempt'] = () => ({ NodeNameToMetaVictims: { n1: { Pods: null, NumPDBViolations: 0 } } });
  await create('waiting', BOARD, 'high');
  const refusedAs = (pattern: RegExp) =>
    eventually(async () => pattern.test((await condition('waiting'))?.message ?? ''), `refused as ${pattern}`);
  await refusedAs(/expected at least one victim pod on "n1"/);
  answers['preempt'] = () => ({ NodeNameToMetaVictims: { n1: { Pods: [{ UID: other.metadata?.uid }] } } });
  await pods().patch('waiting', namespace, 'merge', { metadata: { labels: { again: 'yes' } } });
  await refusedAs(new RegExp(`pod \\(UID: ${other.metadata?.uid}\\) is not on node "n1"`));
  // The extender rejects every node.
  answers['preempt'] = () => ({ NodeNameToMetaVictims: {} });
  await pods().patch('waiting', namespace, 'merge', { metadata: { labels: { again: 'no' } } });
  await refusedAs(/^0\/2 nodes are available: 2 Insufficient example.com\/board/);
  for (const name of ['kept', 'other']) assert.equal((await read(name)).metadata?.deletionTimestamp, undefined);
  assert.equal((await read('kept')).metadata?.uid, victim.metadata?.uid);
  for (const name of ['waiting', 'kept', 'other']) await remove(name);
});

test('an extender binds the pods that request its resource, and a failed binding is retried', async () => {
  let refusals = 1;
  answers['bind'] = async (body) => {
    if (refusals-- > 0) return { Error: 'the lamp is broken' };
    await pods().createSubresource(String(body['PodName']), String(body['PodNamespace']), 'binding', {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: body['PodName'], namespace: body['PodNamespace'], uid: body['PodUID'] },
      target: { apiVersion: 'v1', kind: 'Node', name: body['Node'] },
    });
    return { Error: '' };
  };
  const { metadata } = await create('lamp', LAMP, 'low');
  const node = await bound('lamp');
  const calls = requested.filter(({ verb }) => verb === 'bind').map(({ body }) => body);
  assert.equal(calls.length, 2);
  assert.deepEqual(calls[1], { PodName: 'lamp', PodNamespace: namespace, PodUID: metadata?.uid, Node: node });
  await eventually(async () => {
    const { items } = await plane.of(resources.events).list({ namespace });
    return items.some(
      ({ reason, message }) =>
        reason === 'FailedScheduling' && /binding rejected: .*the lamp is broken/.test(message ?? ''),
    );
  }, 'the event of the refusal');
});
