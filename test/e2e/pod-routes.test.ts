/** Pods of two hosts of a cluster reach each other. Families and ranges are those of the first host. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Node, Pod } from '../../src/api/generated/core/v1.ts';
import { type Appliance, eventually } from './harness.ts';
import { helloImage, importHelloImage } from './images.ts';
import { Lan } from './lan.ts';

const PORT = 8080;
let lan: Lan;
let first: Appliance;
let second: Appliance;
let scratch: string;
before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'he-pod-routes-'));
  lan = await Lan.create();
  first = await lan.add({ name: 'h1', address: '10.88.0.1', config: 'ipFamilies: [IPv4, IPv6]\n' });
  await first.start();
  const created = await first.hyperedge(['token', 'create', '-o', 'json', '--root', first.root]);
  assert.equal(created.code, 0, created.stderr);
  const { server, token, caHash } = JSON.parse(created.stdout) as { server: string; token: string; caHash: string };
  const config = `join: {server: '${server}', token: ${token}, caHash: '${caHash}'}\n`;
  second = await lan.add({ name: 'h2', address: '10.88.0.2', config });
  for (const host of [first, second]) await importHelloImage(host, scratch);
  second.launch();
  await eventually('both nodes Ready', 60_000, async () => {
    const nodes = await first.kubectl(['get', 'nodes', '--no-headers']);
    return (nodes.stdout.match(/ Ready /g) ?? []).length === 2 ? true : undefined;
  });
});
after(async () => {
  await lan?.stop();
  await rm(scratch, { recursive: true, force: true });
});

async function podOn(node: string): Promise<string[]> {
  const command = ['sh', '-c', `while true; do echo ${node} | nc -l -p ${PORT}; done`];
  const overrides = { spec: { nodeName: node, terminationGracePeriodSeconds: 1 } };
  await first.must([
    ...['run', `on-${node}`, `--image=${helloImage}`, '--overrides', JSON.stringify(overrides)],
    ...['--command', '--', ...command],
  ]);
  await first.must(['wait', '--for=condition=Ready', `pod/on-${node}`, '--timeout=60s']);
  const { status } = JSON.parse(await first.must(['get', 'pod', `on-${node}`, '-o', 'json'])) as Pod;
  return (status?.podIPs ?? []).map(({ ip }) => ip ?? '');
}

test("pods on two hosts connect over IPv4 by a route, and over IPv6 by a tunnel on the hosts' IPv4 addresses", {
  timeout: 180_000,
}, async () => {
  const { items } = JSON.parse(await first.must(['get', 'nodes', '-o', 'json'])) as { items: Node[] };
  assert.deepEqual(
    items.map(({ spec }) => spec?.podCIDRs?.length),
    [2, 2],
  );
  const addresses = { h1: await podOn('h1'), h2: await podOn('h2') };
  for (const [from, to] of [
    ['h1', 'h2'],
    ['h2', 'h1'],
  ] as const)
    for (const ip of addresses[to]) {
      await eventually(`${from} → ${ip}`, 20_000, async () => {
        const ask = `nc -w 2 ${ip} ${PORT} </dev/null`;
        const got = await first.kubectl(['exec', `on-${from}`, '--', 'sh', '-c', ask]);
        return got.stdout.trim() === to ? true : undefined;
      });
    }
  const routes = (await first.inside('ip', ['route', 'show', 'via', '10.88.0.2'])).stdout;
  assert.match(routes, /^10\.128\.2\.0\/23 dev \S+ proto \d+ metric 178/m);
});
