/**
 * The smallest bootstrap: a temporary control plane and one offered host in network namespaces. Run by `npm run
 * test:lab`; machines.test.ts does the same with three masters under systemd.
 */
import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Appliance, eventually } from '../e2e/harness.ts';
import { Lan } from '../e2e/lan.ts';

const NAMESPACE = 'openshift-machine-api';
const MASTER = JSON.stringify({
  apiVersion: 'machine.openshift.io/v1beta1',
  kind: 'Machine',
  metadata: { name: 'master', namespace: NAMESPACE },
  spec: { providerSpec: { value: { roles: ['master', 'etcd', 'node'] } } },
});

let lan: Lan;
let temporary: Appliance;
let master: Appliance;
before(async () => {
  lan = await Lan.create();
  temporary = await lan.add({ name: 'b1', address: '10.88.0.1', config: 'handover: {masters: 1}\n' });
  await temporary.start(120_000);
  const ca = new X509Certificate(await readFile(join(temporary.root, 'etc/origin/master/ca.crt')));
  const spki = ca.publicKey.export({ type: 'spki', format: 'der' });
  const caHash = `sha256:${createHash('sha256').update(spki).digest('hex')}`;
  const config = `offer: {server: 'https://10.88.0.1:8443', caHash: '${caHash}'}\n`;
  master = await lan.add({ name: 'b2', address: '10.88.0.2', config });
  master.launch();
});
after(() => lan?.stop());

test('transfers the control plane and deletes the keys of the temporary control plane', {
  timeout: 500_000,
}, async () => {
  await eventually('offered host', 60_000, async () =>
    (await temporary.kubectl(['get', '-n', NAMESPACE, 'bmh', 'b2'])).code === 0 ? true : undefined,
  );
  const online = '{"spec":{"online":true}}';
  await temporary.must(['patch', '-n', NAMESPACE, 'bmh', 'b2', '--type=merge', '-p', online]);
  await temporary.must(['apply', '-f', '-'], { input: MASTER });
  const args = ['install', '--bootstrap-wait', '--root', temporary.root, '--timeout', '240'];
  const waited = await temporary.hyperedge(args, { timeoutMs: 250_000 });
  assert.equal(waited.code, 0, `${waited.stdout}${waited.stderr}\n${temporary.output.slice(-4000)}`);
  assert.match(waited.stdout, /1 of 1 masters run: b2\n(.*\n)*bootstrap complete: this host may be unplugged\n$/);
  assert.equal(await eventually('end of the temporary host', 30_000, () => temporary.exitCode), 0);
  assert.match(temporary.output, /bootstrap complete: .* this host may be unplugged/);
  for (const path of ['etc/origin/master', 'etc/etcd', 'var/lib/origin'])
    assert.equal(existsSync(join(temporary.root, path)), false, path);
});

test('the cluster keeps running on the new master after the temporary control plane has been removed', {
  timeout: 90_000,
}, async () => {
  const nodes = await eventually('one node', 60_000, async () => {
    const shown = await master.kubectl(['get', 'nodes', '-o', 'name']);
    return shown.code === 0 ? shown.stdout : undefined;
  });
  assert.equal(nodes, 'node/b2\n');
  const status = ['get', 'configmap', '-n', 'kube-system', 'bootstrap', '-o', 'jsonpath={.data.status}'];
  assert.equal(await master.must(status), 'complete');
  const { stdout } = await master.hyperedge(['members', '--root', master.root]);
  assert.match(stdout, /\nb2 +\w+ +leader +ok .*\n$/);
  assert.doesNotMatch(stdout, /b1/);
  await master.must(['create', 'configmap', 'written']);
});
