/** User ID blocks of namespaces, with the API server's and the controllers' parts together. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { resources } from '../../../../src/api/resources.ts';
import { startServer, type TestServer } from '../../../apiserver/harness.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../../controllers/harness.ts';

const UID = 'openshift.io/sa.scc.uid-range';
const PATIENCE_MS = 30_000;
let api: TestServer;
let plane: ControlPlane;

before(async () => {
  api = await startServer();
  plane = await startControlPlane({ kubelets: false, api });
});
after(async () => {
  await plane.stop();
  await api.stop();
});

const annotationsOf = (name: string) =>
  eventually(
    async () => {
      const { metadata } = await plane.of(resources.namespaces).get(name);
      return metadata?.annotations?.[UID] === undefined ? undefined : metadata.annotations;
    },
    `users of ${name}`,
    PATIENCE_MS,
  );

test('assigns a separate block of user IDs to each namespace, also in the profile kubernetes', async () => {
  const names = ['default', 'kube-system', ...Array.from({ length: 20 }, (_, index) => `shop-${index}`)];
  await Promise.all(names.slice(2).map((name) => plane.of(resources.namespaces).create({ metadata: { name } })));
  const ranges = new Set<string>();
  for (const name of names) {
    const annotations = await annotationsOf(name);
    assert.match(annotations[UID] ?? '', /^1\d{9}\/10000$/);
    assert.equal(annotations['openshift.io/sa.scc.supplemental-groups'], annotations[UID]);
    assert.match(annotations['openshift.io/sa.scc.mcs'] ?? '', /^s0:c\d+,c\d+$/);
    ranges.add(annotations[UID] ?? '');
  }
  assert.equal(ranges.size, names.length);
  const record = await plane.of(resources.rangeAllocations).get('scc-uid');
  assert.equal(record.range, '1000000000-1999999999/10000');
  const bits = [...Buffer.from(record.data ?? '', 'base64')].map((byte) => byte.toString(2).replaceAll('0', '').length);
  assert.ok(bits.reduce((sum, each) => sum + each, 0) >= names.length);
});

test('restores the annotation with the user ID range of a namespace after a client removed it', async () => {
  const { [UID]: range } = await annotationsOf('shop-3');
  await plane
    .of(resources.namespaces)
    .patch('shop-3', undefined, 'merge', { metadata: { annotations: { [UID]: null } } });
  assert.match((await annotationsOf('shop-3'))[UID] ?? '', /^1\d{9}\/10000$/, range);
});
