import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { toNodeName } from '../../../src/base/brand.ts';
import { createLog, silentLog } from '../../../src/base/log.ts';
import { storeFeed } from '../../../src/host/control/manifest-feeds.ts';
import { openSubmittedPods } from '../../../src/host/control/submitted-pods.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import type { Manifest } from '../../../src/kubelet/port.ts';
import { decodeStaticPods } from '../../../src/kubelet/sources/static-pod.ts';
import { createMemoryStore } from '../../conformance/memory-store.ts';

const pod = (name: string, more = ''): string =>
  `{apiVersion: v1, kind: Pod, metadata: {name: ${name}, namespace: lab}, spec: {containers: [{name: c, image: lab/i:1}]${more}}}`;
const context = { nodeName: toNodeName('node-a'), clock: systemClock, log: silentLog };
const named = (name: string) => (error: Error & { code?: string }) => error.code === name;

test('validates submitted pods, stores them as private files across a restart, replaces and removes them', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-submitted-'));
  try {
    const first = await openSubmittedPods(directory, context);
    const seen: (readonly Manifest[])[] = [];
    first.feed.follow((manifests) => void seen.push(manifests));
    assert.equal((await first.submit(pod('one'))).metadata?.name, 'one-node-a');
    await first.submit(pod('two'));
    await first.submit(pod('one', ', hostNetwork: true'));
    await assert.rejects(first.submit(pod('bad', ', serviceAccountName: x')), named('static-pod'));
    await assert.rejects(first.submit('{'), named('static-pod'));
    await assert.rejects(
      first.submit(pod('root').replace('lab/i:1', 'hyperedge.local/host-root')),
      named('static-pod'),
      'the image of the control plane',
    );
    assert.deepEqual(
      seen.map((manifests) => manifests.length),
      [0, 1, 2, 2],
    );
    const again = await openSubmittedPods(directory, context);
    assert.deepEqual(
      again.list().map(({ metadata, spec }) => [metadata?.name, spec?.hostNetwork ?? false]),
      [
        ['one-node-a', true],
        ['two-node-a', false],
      ],
    );
    assert.equal(again.list()[0]?.metadata?.annotations?.['kubernetes.io/config.source'], 'submitted');
    await again.remove('lab', 'one');
    await again.remove('lab', 'two-node-a');
    await assert.rejects(again.remove('lab', 'one'), named('not-found'));
    assert.deepEqual(await readdir(directory), []);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('keeps and reports stored manifests that are invalid at the start, until they are replaced or removed', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-submitted-'));
  const lines: string[] = [];
  const log = createLog({ component: 'host', level: 2, sink: { write: (line) => lines.push(line) }, nowMs: () => 0 });
  try {
    await writeFile(join(directory, 'lab_half-node-a.yaml'), '{apiVersion');
    await writeFile(join(directory, 'lab_strict-node-a.yaml'), pod('strict', ', serviceAccountName: x'));
    const submitted = await openSubmittedPods(directory, { ...context, log });
    assert.deepEqual(submitted.list(), []);
    assert.deepEqual(await readdir(directory), ['lab_half-node-a.yaml', 'lab_strict-node-a.yaml']);
    assert.equal(lines.length, 2);
    assert.match(lines[1] ?? '', /submitted pod not started.*lab_strict-node-a\.yaml.*service account/i);
    await submitted.submit(pod('strict'));
    await submitted.remove('lab', 'half');
    await assert.rejects(submitted.remove('lab', 'half'), named('not-found'));
    assert.deepEqual(await readdir(directory), ['lab_strict-node-a.yaml']);
    const again = await openSubmittedPods(directory, context);
    assert.deepEqual(
      again.list().map(({ metadata }) => metadata?.name),
      ['strict-node-a'],
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("runs the pods under the node's key in the store, and follows changes and deletion of the key", async () => {
  const store = createMemoryStore();
  const key = '/registry/hosts/node-a';
  const put = async (value: string, at = key): Promise<void> => {
    await store.commit({ guards: [], puts: [{ key: at, value: Buffer.from(value) }] });
  };
  let next = Promise.withResolvers<readonly Manifest[]>();
  const change = (): Promise<readonly Manifest[]> => {
    next = Promise.withResolvers();
    return next.promise;
  };
  const first = next.promise;
  const stop = storeFeed(key, async () => store, silentLog).follow((manifests) => next.resolve(manifests));
  try {
    assert.deepEqual(await first, []);
    let seen = change();
    await put(pod('one'));
    assert.deepEqual(await seen, [{ origin: key, content: pod('one') }]);
    seen = change();
    await put(pod('other'), '/registry/hosts/node-ab');
    const list = `{apiVersion: v1, kind: PodList, items: [${pod('one')}, ${pod('two')}]}`;
    await put(list);
    assert.deepEqual(await seen, [{ origin: key, content: list }]);
    const decoding = { nodeName: toNodeName('node-a'), kind: 'store', origin: key, nowMs: 0 } as const;
    assert.deepEqual(
      decodeStaticPods(list, decoding).map(({ metadata }) => metadata?.name),
      ['one-node-a', 'two-node-a'],
    );
    assert.throws(() => decodeStaticPods('{apiVersion: v1, kind: PodList, items: [1]}', decoding), named('static-pod'));
    seen = change();
    await store.commit({ guards: [], deletes: [key] });
    assert.deepEqual(await seen, []);
  } finally {
    stop();
  }
});
