import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import type { NodeConfig } from '../../../src/host/config/node-config.ts';
import { withPoolSettings } from '../../../src/host/config/pool-settings.ts';
import { systemReservation } from '../../../src/openshift/machine-config/core/pools/sizing.ts';

const own = { kubeletArguments: { 'max-pods': ['250'], 'node-labels': ['a=b'] } } as unknown as NodeConfig;

async function withRoot(
  files: Readonly<Record<string, string>>,
  check: (root: string) => Promise<void>,
): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'pool-settings-'));
  try {
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    }
    await check(root);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

test('files of the pool replace arguments of node-config.yaml', async () => {
  const config = {
    kind: 'KubeletConfiguration',
    maxPods: 100,
    evictionHard: { 'memory.available': '5%' },
    reservedMemory: [{ numaNode: 0, limits: { memory: '1Gi' } }],
    memorySwap: { swapBehavior: 'LimitedSwap' },
    syncFrequency: '0s',
  };
  const files = {
    'etc/kubernetes/kubelet.conf': JSON.stringify(config, undefined, 2),
    'etc/crio/crio.conf.d/01-ctrcfg-pidsLimit': '[crio]\n  [crio.runtime]\n    pids_limit = 2048\n',
    'etc/node-sizing-enabled.env': 'NODE_SIZING_ENABLED=true\n',
  };
  await withRoot(files, async (root) => {
    const { kubeletArguments } = await withPoolSettings(own, root);
    const { 'system-reserved': reserved = [], ...rest } = kubeletArguments ?? {};
    assert.deepEqual(rest, {
      'max-pods': ['100'],
      'node-labels': ['a=b'],
      'eviction-hard': ['memory.available<5%'],
      'reserved-memory': ['0:memory=1Gi'],
      'memory-swap-behavior': ['LimitedSwap'],
      'pod-max-pids': ['2048'],
    });
    assert.match(reserved.join(), /^cpu=\d+m,memory=\d+Mi$/);
  });
});

test('keeps the arguments of the host if the pool has no files, or if kubelet.conf is a kubeconfig', async () => {
  await withRoot({}, async (root) => assert.deepEqual(await withPoolSettings(own, root), own));
  await withRoot({ 'etc/kubernetes/kubelet.conf': 'apiVersion: v1\nkind: Config\n' }, async (root) =>
    assert.deepEqual(await withPoolSettings(own, root), own),
  );
});

test('an invalid file of the pool prevents a restart of the kubelet, but not the start of the host', async () => {
  const files = { 'etc/kubernetes/kubelet.conf': '{"kind":"KubeletConfiguration","staticPodPath":"/tmp"}' };
  await withRoot(files, async (root) => {
    await assert.rejects(
      withPoolSettings(own, root),
      /kubelet\.conf: KubeletConfiguration: staticPodPath is not allowed/,
    );
    const lines: string[] = [];
    const log = createLog({ component: 't', level: 0, sink: { write: (line) => lines.push(line) }, nowMs: () => 0 });
    assert.deepEqual(await withPoolSettings(own, root, log), own);
    assert.match(lines.join(), /pool setting invalid; starting the kubelet without it/);
  });
});

test('derives resource reservations from the size of the host', () => {
  const gib = 1024 ** 3;
  assert.deepEqual(systemReservation(4 * gib, 1), { cpu: '60m', memory: '1024Mi' });
  assert.deepEqual(systemReservation(8 * gib, 4), { cpu: '80m', memory: '1843Mi' });
  assert.deepEqual(systemReservation(256 * gib, 64), { cpu: '230m', memory: '12165Mi' });
});
