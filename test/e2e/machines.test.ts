/** A blank host offers itself, a MachineSet claims it, and it is wiped and available again when the set scales down. */
import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Appliance, eventually } from './harness.ts';
import { Lan } from './lan.ts';

const NAMESPACE = 'openshift-machine-api';
const SET = JSON.stringify({
  apiVersion: 'machine.openshift.io/v1beta1',
  kind: 'MachineSet',
  metadata: { name: 'workers', namespace: NAMESPACE },
  spec: {
    replicas: 0,
    selector: { matchLabels: { set: 'workers' } },
    template: {
      metadata: { labels: { set: 'workers' } },
      spec: {
        metadata: { labels: { zone: 'attic' } },
        taints: [{ key: 'lab', effect: 'PreferNoSchedule' }],
        providerSpec: { value: { hostSelector: { matchLabels: { site: 'lab' } }, pool: 'bench' } },
      },
    },
  },
});

let lan: Lan;
let first: Appliance;
let blank: Appliance;
before(async () => {
  lan = await Lan.create();
  first = await lan.add({ name: 'm1', address: '10.88.0.1' });
  await first.start();
  const ca = new X509Certificate(await readFile(join(first.root, 'etc/origin/master/ca.crt')));
  const spki = ca.publicKey.export({ type: 'spki', format: 'der' });
  const caHash = `sha256:${createHash('sha256').update(spki).digest('hex')}`;
  const offer = `offer: {server: 'https://10.88.0.1:8443', caHash: '${caHash}'}\n`;
  blank = await lan.add({ name: 'm2', address: '10.88.0.2', config: offer });
  blank.launch();
});
after(() => lan?.stop());

const get = async <T>(...args: readonly string[]): Promise<T> =>
  JSON.parse(await first.must(['get', '-n', NAMESPACE, '-o', 'json', ...args]));

interface Host {
  readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
  readonly spec: {
    readonly online: boolean;
    readonly consumerRef?: { readonly name: string };
    readonly description: string;
  };
  readonly status: {
    readonly provisioning: { readonly state: string };
    readonly hardware: { readonly cpu: { readonly count: number } };
  };
}

const untilHost = (what: string, check: (host: Host) => boolean, timeoutMs = 30_000): Promise<Host> =>
  eventually(`host ${what}`, timeoutMs, async () => {
    const host = await get<Host>('baremetalhost', 'm2');
    return check(host) ? host : undefined;
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${blank.output.slice(-3000)}`);
  });

test('adds a blank host to the inventory as a host that waits for approval', { timeout: 60_000 }, async () => {
  const host = await untilHost('available', ({ status }) => status.provisioning.state === 'available');
  assert.equal(host.spec.online, false);
  assert.ok(host.status.hardware.cpu.count > 0);
  const [fingerprint = '-'] = /SHA256:\S+/.exec(host.spec.description) ?? [];
  await eventually('fingerprint on the console', 10_000, () => (blank.output.includes(fingerprint) ? true : undefined));
  await first.must(['apply', '-f', '-'], { input: SET });
  await first.must(['scale', '-n', NAMESPACE, 'machineset', 'workers', '--replicas=1']);
  const why = await eventually('machine without a host', 10_000, async () => {
    const { items } = await get<{ items: { status?: { phase?: string; conditions?: { message?: string }[] } }[] }>(
      'machines',
    );
    const [machine] = items;
    return machine?.status?.phase === 'Provisioning' ? JSON.stringify(machine.status.conditions) : undefined;
  });
  assert.match(why, /No host to claim of 1 host: 1 not selected/);
  assert.equal(existsSync(join(blank.root, 'etc/origin/node/joined.yaml')), false);
});

test('claims an approved host, which joins and is linked to its Node', { timeout: 90_000 }, async () => {
  await first.must(['label', '-n', NAMESPACE, 'bmh', 'm2', 'site=lab']);
  await first.must(['patch', '-n', NAMESPACE, 'bmh', 'm2', '--type=merge', '-p', '{"spec":{"online":true}}']);
  const table = await eventually('machine Running', 60_000, async () => {
    const shown = await first.must(['get', '-n', NAMESPACE, 'machines', '-o', 'wide']);
    return / Running /.test(shown) ? shown : undefined;
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${blank.output.slice(-3000)}`);
  });
  assert.match(
    table,
    /^NAME +PHASE +TYPE +REGION +ZONE +AGE +NODE +PROVIDERID +STATE\nworkers-\w+ +Running .* m2 +baremetalhost:\/\/\/openshift-machine-api\/m2\//,
  );
  await eventually('set is Ready', 40_000, async () =>
    /^workers +1 +1 +1 +1 /m.test(await first.must(['get', '-n', NAMESPACE, 'machineset'])) ? true : undefined,
  );
  const node = await eventually('linked Node', 20_000, async () => {
    const shown = JSON.parse(await first.must(['get', 'node', 'm2', '-o', 'json']));
    return shown.metadata.labels['zone'] === undefined ? undefined : shown;
  });
  assert.equal(node.metadata.labels['zone'], 'attic');
  assert.equal(node.metadata.labels['node-role.kubernetes.io/bench'], '');
  assert.match(node.metadata.annotations['machine.openshift.io/machine'], /^openshift-machine-api\/workers-/);
  assert.match(node.spec.providerID, /^baremetalhost:\/\/\/openshift-machine-api\/m2\//);
  assert.ok(node.spec.taints.some(({ key }: { key: string }) => key === 'lab'));
  await untilHost(
    'provisioned without its token',
    ({ status, metadata }) =>
      status.provisioning.state === 'provisioned' &&
      metadata.annotations['machine.hyperedge.dev/sealed-join'] === undefined,
  );
  const tokens = await first.must(['get', 'secrets', '-n', 'kube-system', '-o', 'name']);
  assert.doesNotMatch(tokens, /bootstrap-token-/);
});

test('drains, wipes and releases the host on scale-down', { timeout: 240_000 }, async () => {
  await first.must(['scale', '-n', NAMESPACE, 'machineset', 'workers', '--replicas=0']);
  await eventually('host process ends', 150_000, () => blank.exitCode).catch(async (error: unknown) => {
    throw new Error(
      `${String(error)}\n${await first.must(['get', '-n', NAMESPACE, 'machines,bmh', '-o', 'yaml'])}\n${blank.output.slice(-3000)}`,
    );
  });
  assert.equal(blank.exitCode, 0, blank.output.slice(-3000));
  assert.equal(existsSync(join(blank.root, 'var/lib/origin')), false);
  assert.equal(existsSync(join(blank.root, 'etc/origin/node')), false);
  // Start the host process again, as its service manager does.
  blank.launch();
  const host = await untilHost(
    'available',
    ({ spec, status }) => status.provisioning.state === 'available' && spec.consumerRef === undefined,
  );
  assert.equal(host.spec.online, true);
  await eventually('machine and node are deleted', 20_000, async () => {
    const left = await first.must(['get', '-n', NAMESPACE, 'machines', '-o', 'name']);
    const nodes = await first.must(['get', 'nodes', '-o', 'name']);
    return left === '' && nodes.trim() === 'node/m1' ? true : undefined;
  });
});
