/** Cost of the deletion of many namespaces: requests of the controllers, counted in the audit log. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { resources } from '../../../../src/api/resources.ts';
import { startServer, type TestServer } from '../../../apiserver/harness.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

const NAMESPACES = 60;
/** One read, the writes of the namespace, and two requests for each kind with content. */
const MAX_REQUESTS_EACH = 20;

let server: TestServer;
let plane: ControlPlane;
let requests: string[] = [];

before(async () => {
  const sink = {
    accept: (event: string) => {
      const { user, verb, requestURI } = JSON.parse(event);
      if (user.username === 'system:kube-controller-manager') requests.push(`${verb} ${requestURI}`);
      return undefined;
    },
    close: async () => {},
  };
  const policy = { rules: [{ level: 'Metadata' as const }], omitStages: ['RequestReceived' as const] };
  server = await startServer({ audit: { policy, sinks: [sink] } });
  plane = await startControlPlane({ api: server });
});
after(async () => {
  await plane.stop();
  await server.stop();
});

test('deletes many namespaces with few requests for each', async () => {
  const namespaces = plane.of(resources.namespaces);
  const maps = plane.of(resources.configMaps);
  const names = Array.from({ length: NAMESPACES }, (_, index) => `bulk-${index}`);
  for (const name of names) {
    await namespaces.create({ metadata: { name } });
    await maps.create({ metadata: { name: 'content', namespace: name } });
  }
  const count = async () => (await maps.list({ fieldSelector: 'metadata.name=kube-root-ca.crt' })).items.length;
  await eventually(async () => (await count()) >= NAMESPACES, 'the content of the namespaces', 30_000);
  requests = [];
  await Promise.all(names.map((name) => namespaces.delete(name)));
  const left = async () =>
    (await namespaces.list()).items.filter(({ metadata }) => metadata?.name?.startsWith('bulk-'));
  await eventually(async () => (await left()).length === 0, 'the end of the namespaces', 120_000);
  assert.ok(requests.length <= MAX_REQUESTS_EACH * NAMESPACES, `${requests.length} requests`);
});
