/** The single master returns with another address: its workers find it through gossip or by name. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Appliance, eventually } from './harness.ts';
import { Lan } from './lan.ts';

let lan: Lan;
let master: Appliance;
let worker: Appliance;

before(
  async () => {
    lan = await Lan.create();
    master = await lan.add({ name: 'h1', address: '10.88.0.1' });
    await master.start();
    worker = await lan.add({ name: 'h2', address: '10.88.0.2' });
    const made = await master.hyperedge(['token', 'create', '-o', 'json', '--root', master.root]);
    assert.equal(made.code, 0, made.stderr);
    const { server, token, caHash } = JSON.parse(made.stdout) as Record<string, string>;
    await lan.configure(worker, 'h2', `join: {server: '${server}', token: ${token}, caHash: '${caHash}'}\n`);
    worker.launch();
    await isReady('h2');
  },
  { timeout: 240_000 },
);
after(() => lan?.stop());

const isReady = (name: string, timeoutMs = 60_000): Promise<true> =>
  eventually(`node ${name} Ready`, timeoutMs, async () => {
    const { stdout } = await master.kubectl(['get', 'nodes', '--no-headers']);
    return new RegExp(`^${name} +Ready `, 'm').test(stdout) ? true : undefined;
  });

/** Waits for a renewal of the node's lease, which proves a connection to the API server. */
async function renews(name: string, timeoutMs: number): Promise<void> {
  const time = async (): Promise<string> =>
    (await master.kubectl(['get', 'lease', name, '-n', 'kube-node-lease', '-o', 'jsonpath={.spec.renewTime}'])).stdout;
  const before = await time();
  await eventually(`lease of ${name} renewed`, timeoutMs, async () => {
    const now = await time();
    return now !== '' && now !== before ? true : undefined;
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${worker.output.slice(-3_000)}`);
  });
}

async function move(host: Appliance, from: string, to: string): Promise<void> {
  for (const args of [
    ['addr', 'del', `${from}/24`, 'dev', 'eth0'],
    ['addr', 'add', `${to}/24`, 'dev', 'eth0'],
    ['route', 'replace', 'default', 'via', '10.88.0.254'],
  ]) {
    const ran = await host.inside('ip', args);
    assert.equal(ran.code, 0, ran.stderr);
  }
}

test('reconnects a worker to the single master that rebooted with another address', { timeout: 180_000 }, async () => {
  await master.halt('SIGTERM');
  await move(master, '10.88.0.1', '10.88.0.31');
  await master.start();
  await renews('h2', 90_000);
  await isReady('h2');
});

test('reconnects a worker when the address of the running master changes', { timeout: 180_000 }, async () => {
  await move(master, '10.88.0.31', '10.88.0.32');
  await renews('h2', 90_000);
  await isReady('h2');
});

test('marks a disconnected worker NotReady within seconds, also in a cluster of two hosts', {
  timeout: 90_000,
}, async () => {
  // Wait until the ring has both members again.
  await eventually('both in the ring', 60_000, async () => {
    const { stdout } = await master.hyperedge(['gossip', 'members', '--root', master.root]);
    return /^h2 .*\balive\b/m.test(stdout) ? true : undefined;
  });
  const began = performance.now();
  await lan.cable('h2', 'down');
  await eventually('node h2 NotReady', 20_000, async () => {
    const { stdout } = await master.kubectl(['get', 'nodes', '--no-headers']);
    return /^h2 +NotReady/m.test(stdout) ? true : undefined;
  });
  console.log(`NotReady ${Math.round(performance.now() - began)} ms after the cable was pulled`);
  await lan.cable('h2', 'up');
  await isReady('h2');
});
