/** Hosts that probe another one under update, through a real API server with the identities of their Nodes. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { UPDATE_ANNOTATION } from '../../../src/api/kinds/nodes/nodes/host-report.ts';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import { type ApiClient, createApiClient, createInformerFactory } from '../../../src/client/index.ts';
import { systemClock as clock, systemRandom as random } from '../../../src/host/process/process.ts';
import { startPeerProbes } from '../../../src/openshift/updates/peer-probes.ts';
import { startServer, type TestServer } from '../../apiserver/harness.ts';

let api: TestServer;
let admin: ApiClient;
const ended: (() => Promise<void>)[] = [];
before(async () => {
  api = await startServer();
  admin = await clientOf('system:admin', 'system:masters');
  for (const name of ['h1', 'h2']) {
    await admin.resource(resources.nodes).create({ metadata: { name } });
    const status = { conditions: [{ type: 'Ready', status: 'True' }] };
    await admin.resource(resources.nodes).patch(name, undefined, 'strategic', { status }, { subresource: 'status' });
  }
});
after(async () => {
  for (const end of ended) await end();
  await admin?.close();
  await api?.stop();
});

async function clientOf(name: string, ...groups: string[]): Promise<ApiClient> {
  const { certPem, keyPem } = await api.user(name, ...groups);
  const options = { server: api.url, ca: api.ca.certPem, cert: certPem, key: keyPem, userAgent: 'test' };
  return createApiClient({ ...options, log: silentLog, clock });
}

async function host(nodeName: string, probe: () => Promise<void>) {
  const client = await clientOf(`system:node:${nodeName}`, 'system:nodes');
  const informers = createInformerFactory({ client, log: silentLog, clock, random });
  const nodes = informers.informer(resources.nodes);
  const peers = startPeerProbes({ nodeName, client, nodes, probe, clock, log: silentLog });
  ended.push(async () => {
    await peers.stop();
    await informers.stop();
    await client.close();
  });
  return peers;
}

const until = async (what: string, holds: () => boolean): Promise<void> => {
  for (let round = 0; round < 150; round++) {
    if (holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail(what);
};

test('another host reports whether it can connect to a host under update', { timeout: 60_000 }, async () => {
  let broken = true;
  let probes = 0;
  const h1 = await host('h1', async () => assert.fail('nothing is under update'));
  await host('h2', async () => {
    probes += 1;
    if (broken) throw new Error('connection refused');
  });
  await until('h2 takes part', () => h1.unreached('9') !== '');
  assert.match(h1.unreached('9'), /h2: has not probed it yet/);
  assert.equal(probes, 0);
  const update = { id: '9', version: '2.0.0', state: 'Restarting', message: '' };
  const annotate = (value: object) =>
    admin.resource(resources.nodes).patch('h1', undefined, 'merge', {
      metadata: { annotations: { [UPDATE_ANNOTATION]: JSON.stringify(value) } },
    });
  await annotate(update);
  await until('a failed probe', () => /h2: connection refused/.test(h1.unreached('9')));
  broken = false;
  await until('a passed probe', () => h1.unreached('9') === '');
  await annotate({ ...update, state: 'Done' });
  await until('the result is removed', () => /has not probed/.test(h1.unreached('9')));
  const before = probes;
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  assert.equal(probes, before, 'no probe without an update');
});
