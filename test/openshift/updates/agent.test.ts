/** Update agent of a host with a real API server, the identity of its node and real files. */

import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { mkdir, mkdtemp, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import {
  type HostUpdate,
  hostUpdateOf,
  REPORT_ANNOTATION,
  WANTED_ANNOTATION,
} from '../../../src/api/kinds/nodes/nodes/host-report.ts';
import { announcementConfigMap } from '../../../src/api/releases/announcement.ts';
import { manifestText, releaseFileName } from '../../../src/api/releases/manifest.ts';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import { type ApiClient, createApiClient, createInformerFactory } from '../../../src/client/index.ts';
import { systemClock as clock, systemRandom as random } from '../../../src/host/process/process.ts';
import { UpdateAgent } from '../../../src/openshift/updates/agent.ts';
import { createExecutables, createVerifier } from '../../../src/openshift/updates/io/index.ts';
import { signatureOf } from '../../../src/openshift/updates/io/keys.ts';
import type { ReleaseFiles } from '../../../src/openshift/updates/port.ts';
import { sha256Hex } from '../../../src/wire/digest.ts';
import { startServer, type TestServer } from '../../apiserver/harness.ts';

const NODE = 'h1';
const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const executable = Buffer.from('the new executable');
const sha256 = createHash('sha256').update(executable).digest('hex');
const file = { name: releaseFileName('x64'), architecture: 'x64', size: executable.length, sha256 } as const;
const text = manifestText({ version: '0.2.0', kubernetes: 'v1.36.0', channels: [], files: [file] });

let api: TestServer;
let admin: ApiClient;
let own: ApiClient;
let root = '';

const clientOf = async (name: string, ...groups: string[]): Promise<ApiClient> => {
  const { certPem, keyPem } = await api.user(name, ...groups);
  const options = { server: api.url, ca: api.ca.certPem, cert: certPem, key: keyPem, userAgent: 'test' };
  return createApiClient({ ...options, log: silentLog, clock });
};

before(async () => {
  api = await startServer();
  admin = await clientOf('system:admin', 'system:masters');
  own = await clientOf(`system:node:${NODE}`, 'system:nodes');
  root = await mkdtemp(join(tmpdir(), 'he-agent-'));
  await mkdir(join(root, 'bin'));
  await writeFile(join(root, 'bin/hyperedge'), 'the old executable');
  await writeFile(join(root, 'blob'), executable);
  await admin.resource(resources.nodes).create({ metadata: { name: NODE } });
  const signature = signatureOf(text, privateKey);
  await admin.resource(resources.configMaps).create(announcementConfigMap({ name: 'release-0.2.0', text, signature }));
});
after(async () => {
  await Promise.all([own?.close(), admin?.close()]);
  await api?.stop();
  await rm(root, { recursive: true, force: true });
});

/** Clock in which a minute takes two seconds. */
const fast = { ...clock, monotonicMs: () => clock.monotonicMs() * 30 };
/** Runs of control plane containers, and the reason why other hosts cannot connect. */
let runs = 'api 1';
let unreached = '';
const saved: string[] = [];
let storeLevel = 1;

/** Host process of this version. `restarted` resolves when its restart is requested. */
function hostProcess(
  running: string,
  files: Partial<ReleaseFiles> = {},
): { readonly restarted: Promise<void>; stop(): Promise<void> } {
  const informers = createInformerFactory({ client: own, log: silentLog, clock, random });
  const restart = Promise.withResolvers<void>();
  const agent = new UpdateAgent({
    nodeName: NODE,
    running,
    architecture: 'x64',
    keepsReleases: files.retain !== undefined,
    timeoutMs: 60_000,
    client: own,
    informers,
    executables: createExecutables({
      directory: join(root, 'bin'),
      recordFile: join(root, 'record.json'),
      own: join(root, 'bin', running === '0.1.0' ? 'hyperedge' : `hyperedge-${running}`),
      startGuard: async () => {},
      restart: async () => restart.resolve(),
    }),
    files: {
      pathOf: async () => undefined,
      fetch: async (wanted) => {
        assert.equal(wanted.sha256, sha256);
        return join(root, 'blob');
      },
      retain: async () => {},
      ...files,
    },
    verify: createVerifier(() => keys),
    fault: () => '',
    runs: async () => runs,
    unreached: () => unreached,
    storeLevel: async () => storeLevel,
    readableLevel: 3,
    saveStore: async (version) => {
      saved.push(version);
      return `store-${version}.db`;
    },
    clock: fast,
    log: silentLog,
  });
  agent.start();
  return {
    restarted: restart.promise,
    stop: async () => {
      await agent.stop();
      await informers.stop();
    },
  };
}

let keys = [publicKey];
const want = (id: string, version: string, change: object = {}): Promise<Node> => {
  const wanted = { id, version, manifest: sha256Hex(text), ...change };
  const annotations = { [WANTED_ANNOTATION]: JSON.stringify(wanted) };
  return admin.resource(resources.nodes).patch(NODE, undefined, 'merge', { metadata: { annotations } });
};

async function until(
  what: string,
  holds: (update: HostUpdate | undefined) => boolean,
): Promise<HostUpdate | undefined> {
  for (let round = 0; round < 200; round++) {
    const update = hostUpdateOf(await admin.resource(resources.nodes).get(NODE));
    if (holds(update)) return update;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`not ${what}`);
}

test('a host fetches a release, switches to it and restarts, and completes when the cluster reports it healthy', {
  timeout: 60_000,
}, async () => {
  const old = hostProcess('0.1.0');
  await want('2', '0.2.0');
  await old.restarted;
  assert.equal(await readlink(join(root, 'bin/hyperedge')), 'hyperedge-0.2.0');
  assert.equal(await readFile(join(root, 'bin/hyperedge'), 'utf8'), 'the new executable');
  assert.equal(await readFile(join(root, 'bin/hyperedge-0.1.0'), 'utf8'), 'the old executable');
  assert.deepEqual(saved, ['0.1.0']);
  assert.match(await readFile(join(root, 'record.json'), 'utf8'), /"snapshot":"store-0\.1\.0\.db"/);
  const switched = await until('restarting', (update) => update?.state === 'Restarting' && update.id === '2');
  assert.ok(Date.parse(switched?.since ?? '') > 0, 'the report has the time of its state');
  await old.stop();

  const next = hostProcess('0.2.0');
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const waiting = await until('waiting for its report', (update) => update?.state === 'Restarting');
  assert.deepEqual(waiting, switched);
  const nodes = own.resource(resources.nodes);
  const report = { version: '0.2.0', kubernetes: 'v1.36.0', probes: {} };
  await nodes.patch(NODE, undefined, 'merge', {
    metadata: { annotations: { [REPORT_ANNOTATION]: JSON.stringify(report) } },
  });
  const conditions = [{ type: 'Ready', status: 'True' }];
  await nodes.patch(NODE, undefined, 'strategic', { status: { conditions } }, { subresource: 'status' });
  // An API server that exits every second, followed by one that other hosts cannot connect to.
  const restarting = setInterval(() => {
    runs = `api ${Math.random()}`;
  }, 1_000);
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  clearInterval(restarting);
  assert.match(await readFile(join(root, 'record.json'), 'utf8'), /"phase":"trying"/);
  unreached = '0 of 1 other hosts reach this host';
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  assert.match(await readFile(join(root, 'record.json'), 'utf8'), /"phase":"trying"/);
  unreached = '';
  const began = performance.now();
  await until('done', (update) => update?.state === 'Done' && update.version === '0.2.0');
  assert.ok(performance.now() - began > 1_000, 'healthy for a while');
  await next.stop();
});

test('rejects a release manifest with a version other than the requested one', { timeout: 60_000 }, async () => {
  const host = hostProcess('0.2.0');
  await want('3', '0.9.9');
  const update = await until('failed', (each) => each?.id === '3' && each.state === 'Failed');
  assert.equal(update?.message, 'the manifest is for version 0.2.0, not 0.9.9');
  assert.equal(await readlink(join(root, 'bin/hyperedge')), 'hyperedge-0.2.0');
  await host.stop();
});

test('rejects a switch to an older release that cannot read the store', { timeout: 60_000 }, async () => {
  storeLevel = 3;
  const before = saved.length;
  await writeFile(join(root, 'bin/hyperedge-0.1.9'), 'kept from before');
  await want('older', '0.1.9', { manifest: '' });
  const host = hostProcess('0.2.0');
  const update = await until('failed', (each) => each?.id === 'older' && each.state === 'Failed');
  assert.equal(
    update?.message,
    'release 0.1.9 reads stores up to level 2, and the store has level 3; stay at 0.2.0 or update to a newer release',
  );
  assert.equal(await readlink(join(root, 'bin/hyperedge')), 'hyperedge-0.2.0');
  assert.equal(saved.length, before);
  await host.stop();
  storeLevel = 2;
});

test('drains a host before the update and uncordons it afterwards if its pool requests a drain', {
  timeout: 60_000,
}, async () => {
  const pods = admin.resource(resources.pods);
  await admin.resource(resources.serviceAccounts).create({ metadata: { name: 'default', namespace: 'default' } });
  const spec = { nodeName: NODE, terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'x' }] };
  await pods.create({ metadata: { name: 'web', namespace: 'default' }, spec });
  await want('4', '0.9.8', { drain: true, manifest: '' });
  // A version that the host has kept needs no announcement.
  await writeFile(join(root, 'bin/hyperedge-0.9.8'), 'kept from before');
  const again = hostProcess('0.2.0');
  await again.restarted;
  const node = await admin.resource(resources.nodes).get(NODE);
  assert.equal(node.spec?.unschedulable, true);
  assert.deepEqual((await pods.list({ namespace: 'default' })).items, []);
  await again.stop();
  const next = hostProcess('0.9.8');
  const report = { version: '0.9.8', kubernetes: 'v1.36.0', probes: {} };
  await own.resource(resources.nodes).patch(NODE, undefined, 'merge', {
    metadata: { annotations: { [REPORT_ANNOTATION]: JSON.stringify(report) } },
  });
  await until('done', (update) => update?.id === '4' && update.state === 'Done');
  for (let round = 0; round < 100; round++) {
    const { spec: now } = await admin.resource(resources.nodes).get(NODE);
    if (now?.unschedulable !== true) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.notEqual((await admin.resource(resources.nodes).get(NODE)).spec?.unschedulable, true);
  await next.stop();
});

test('deletes the store snapshot of a rolled-back update once the host is healthy', {
  timeout: 60_000,
}, async () => {
  const record = { id: '5', from: '0.9.8', to: '0.9.9', phase: 'failed', message: 'x', timeoutMs: 1 };
  const file = join(root, 'record.json');
  await writeFile(file, JSON.stringify({ ...record, snapshot: 'store-0.9.8.db' }));
  await want('5', '0.9.9');
  const host = hostProcess('0.9.8');
  await until('failed', (update) => update?.id === '5' && update.state === 'Failed');
  assert.match(await readFile(file, 'utf8'), /store-0\.9\.8\.db/);
  // The cluster returns to the same release at once, possibly before the store of this host has started.
  await want('5-back', '0.9.8');
  await until('done', (update) => update?.id === '5-back' && update.state === 'Done');
  assert.match(await readFile(file, 'utf8'), /"id":"5-back".*store-0\.9\.8\.db/);
  for (let round = 0; round < 100 && /store-/.test(await readFile(file, 'utf8')); round++)
    await new Promise((resolve) => setTimeout(resolve, 100));
  const kept = { ...record, id: '5-back', to: '0.9.8', phase: 'done', message: '', timeoutMs: 0 };
  assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), kept);
  await host.stop();
});

test('keeps release files while the trusted keys are not loaded yet, and backs off after failed fetches', {
  timeout: 60_000,
}, async () => {
  keys = [];
  const retained: (readonly string[])[] = [];
  const fetched: number[] = [];
  const host = hostProcess('0.9.8', {
    retain: async (digests) => void retained.push(digests),
    fetch: async () => {
      fetched.push(fast.monotonicMs());
      throw new Error('HTTP 404');
    },
  });
  for (let round = 0; round < 100 && retained.length === 0; round++)
    await new Promise((resolve) => setTimeout(resolve, 100));
  assert.deepEqual(retained[0], [sha256]);
  assert.deepEqual(fetched, []);
  keys = [publicKey];
  for (let change = 0; change < 30; change++) {
    await want('keep', '0.9.8', { change });
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.ok(fetched.length >= 1 && fetched.length <= 6, `${fetched.length} fetches in 90 s of the agent's clock`);
  await host.stop();
});
