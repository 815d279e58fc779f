import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { createLog } from '../../../src/base/log.ts';
import type { NodeConfig } from '../../../src/host/config/node-config.ts';
import { withPoolSettings } from '../../../src/host/config/pool-settings.ts';
import { showSettings } from '../../../src/host/node/shown-settings.ts';
import { DEFAULT_KUBELET_CONFIG, type KubeletConfig } from '../../../src/kubelet/index.ts';

const config = {
  ...DEFAULT_KUBELET_CONFIG,
  maxPods: 77,
  paths: { staticPods: '/pods' },
  listen: { address: '0.0.0.0', port: 10250 },
  eviction: { maxPodGraceSeconds: 0, pressureTransitionMs: 300_000 },
  shutdownPeriods: [],
} as unknown as KubeletConfig;
const own = { kubeletArguments: { 'max-pods': ['250'] } } as unknown as NodeConfig;

test('writes kubelet.conf for display only, and does not replace the file of a pool', async () => {
  const root = await mkdtemp(join(tmpdir(), 'kubelet-conf-'));
  const lines: string[] = [];
  const log = createLog({
    component: 'test',
    level: 0,
    sink: { write: (line) => void lines.push(line) },
    nowMs: () => 0,
  });
  try {
    const path = join(root, 'etc/kubernetes/kubelet.conf');
    await showSettings(root, config, log);
    const shown = await readFile(path, 'utf8');
    assert.match(shown, /^maxPods: 77$/m);
    assert.match(await readFile(join(root, 'etc/crio/crio.conf.d/00-default'), 'utf8'), /log_level = "info"/);
    assert.equal(parse(shown).kind, 'KubeletConfiguration');
    assert.deepEqual(await withPoolSettings(own, root), own);
    await showSettings(root, { ...config, maxPods: 78 }, log);
    assert.match(await readFile(path, 'utf8'), /^maxPods: 78$/m);

    await writeFile(path, '{"kind": "KubeletConfiguration", "maxPods": 100}');
    await showSettings(root, config, log);
    assert.match(await readFile(path, 'utf8'), /"maxPods": 100/);
    assert.deepEqual((await withPoolSettings(own, root)).kubeletArguments?.['max-pods'], ['100']);

    await rm(path);
    await mkdir(path);
    await showSettings(root, config, log);
    assert.match(lines.join(), /settings of the host not published/);
  } finally {
    await rm(root, { recursive: true });
  }
});
