/** The deployer with files on disk and a real API server. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import { type ApiClient, createEventRecorder } from '../../../src/client/index.ts';
import { ManifestDeployer } from '../../../src/host/manifests/deployer.ts';
import { createManifestDirectory } from '../../../src/host/manifests/io/manifest-directory.ts';
import { systemClock as clock, systemRandom as random } from '../../../src/host/process/process.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../controllers/harness.ts';

let plane: ControlPlane;
let root: string;
let directory: string;
let stop: () => Promise<void>;

before(async () => {
  plane = await startControlPlane();
});
after(() => plane.stop());
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'deployer-'));
  directory = join(root, 'manifests');
  await mkdir(directory);
  stop = start(plane.admin);
});
afterEach(async () => {
  await stop();
  await rm(root, { recursive: true, force: true });
});

function start(client: ApiClient): () => Promise<void> {
  const recorder = createEventRecorder({ client, component: 'manifests', clock, random, log: silentLog });
  const deployer = new ManifestDeployer({
    directory: createManifestDirectory(directory, () => ({ close: () => {} })),
    host: 'host-1',
    exclusively: (work) => work(client, new AbortController().signal),
    recorder,
    // Intervals are shortened, because no watch reports the changes of these tests. 5 s become 500 ms.
    clock: {
      ...clock,
      monotonicMs: () => clock.monotonicMs() * 10,
      setTimer: (delayMs, callback) => clock.setTimer(Math.min(delayMs, 50), callback),
    },
    log: silentLog,
  });
  deployer.start();
  return async () => {
    await deployer.stop();
    await recorder.stop();
  };
}

const map = (name: string, data: object = {}): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data });
const put = (name: string, ...documents: string[]): Promise<void> =>
  writeFile(join(directory, name), documents.join('\n---\n'));
const maps = () => plane.of(resources.configMaps);
const present = async (name: string): Promise<boolean> =>
  (await maps().list({ namespace: 'default' })).items.some(({ metadata }) => metadata?.name === name);
const states = async (): Promise<Record<string, string>> =>
  Object.fromEntries(
    (await maps().list({ namespace: 'kube-system', labelSelector: 'hyperedge.dev/manifest' })).items.map(
      ({ data }) => [data?.['file'] ?? '', data?.['state'] ?? ''] as const,
    ),
  );

test('deletes the objects of a deleted file that was applied only in part', async () => {
  await put('part.yaml', map('accepted'), map('Not A Name'));
  await eventually(async () => (await states())['part.yaml'] === 'Failed', 'the file fails');
  assert.ok(await present('accepted'));
  await rm(join(directory, 'part.yaml'));
  await eventually(async () => !(await present('accepted')), 'the object of the deleted file is deleted');
  await eventually(async () => (await states())['part.yaml'] === undefined, 'the parent is deleted');
});

test('applies the other files if the server fails to process an object, and retries the object', async () => {
  const hooks = plane.of(resources.validatingWebhookConfigurations);
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['configmaps'] };
  await hooks.create({
    metadata: { name: 'unreachable' },
    webhooks: [
      {
        name: 'unreachable.lab.example',
        clientConfig: { url: 'https://127.0.0.1:1/' },
        rules: [rule],
        objectSelector: { matchLabels: { checked: 'yes' } },
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        timeoutSeconds: 1,
      },
    ],
  });
  const metadata = { name: 'first', namespace: 'default', labels: { checked: 'yes' } };
  await put('a.yaml', JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata }));
  await put('b.yaml', map('second'));
  await eventually(() => present('second'), 'the second file is applied');
  await eventually(async () => (await states())['a.yaml'] === 'Failed', 'the first file fails');
  assert.equal(await present('first'), false);
  await hooks.delete('unreachable');
  await eventually(() => present('first'), 'the first file is applied');
});

test('keeps the objects of a file that is missing while an editor replaces it', async () => {
  await put('edited.yaml', map('edited'));
  await eventually(async () => (await states())['edited.yaml'] === 'Applied', 'the file is applied');
  const { uid } = (await maps().get('edited', 'default')).metadata ?? {};
  await rename(join(directory, 'edited.yaml'), join(directory, 'edited.yaml~'));
  await setTimeout(250);
  await rename(join(directory, 'edited.yaml~'), join(directory, 'edited.yaml'));
  await setTimeout(800);
  assert.equal((await maps().get('edited', 'default')).metadata?.uid, uid);
});

test('keeps the objects at the end of a file while it is copied, and deletes those that stay absent', async () => {
  await put('copied.yaml', map('first'), map('last'), map('dropped'));
  await eventually(async () => (await states())['copied.yaml'] === 'Applied', 'the file is applied');
  const { uid } = (await maps().get('last', 'default')).metadata ?? {};
  await put('copied.yaml', map('first', { copied: 'in part' }));
  await eventually(
    async () => (await maps().get('first', 'default')).data?.['copied'] === 'in part',
    'the first part is applied',
  );
  assert.ok(await present('last'), 'the rest of the file is still to come');
  await put('copied.yaml', map('first', { copied: 'in part' }), map('last'));
  await eventually(async () => !(await present('dropped')), 'the object that is no longer in the file is deleted');
  assert.equal((await maps().get('last', 'default')).metadata?.uid, uid);
  await eventually(async () => (await states())['copied.yaml'] === 'Applied', 'the file is applied completely');
});

test('keeps the objects of a file that has become empty, and deletes them when the file is deleted', async () => {
  await put('emptied.yaml', map('survivor'));
  await eventually(async () => (await states())['emptied.yaml'] === 'Applied', 'the file is applied');
  await put('emptied.yaml', '');
  await eventually(async () => (await states())['emptied.yaml'] === 'Failed', 'the empty file is reported');
  await setTimeout(800);
  assert.ok(await present('survivor'));
  await rm(join(directory, 'emptied.yaml'));
  await eventually(async () => !(await present('survivor')), 'the object of the deleted file is deleted');
});

test('deletes nothing if the directory has more files than the deployer reads', async () => {
  await put('z.yaml', map('last'));
  await eventually(() => present('last'), 'the file is applied');
  for (let index = 0; index < 1_000; index += 1) await put(`more-${index}.yaml`, '');
  await setTimeout(3_000);
  assert.ok(await present('last'));
});

test('deletes nothing if a file cannot be inspected', async () => {
  await put('kept.yaml', map('kept'));
  await eventually(() => present('kept'), 'the file is applied');
  await rename(join(directory, 'kept.yaml'), join(root, 'aside.yaml'));
  // A link to itself exists, but cannot be resolved.
  await symlink('kept.yaml', join(directory, 'kept.yaml'));
  await eventually(async () => (await states())['kept.yaml'] === 'Failed', 'the failure is reported');
  assert.ok(await present('kept'));
});
