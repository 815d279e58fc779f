import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { ApiClient } from '../../../src/client/types.ts';
import { sysconfigOf } from '../../../src/host/config/node-group.ts';
import { settingsOf } from '../../../src/host/config/settings.ts';
import { followHostGroup, type NodeGroupOptions } from '../../../src/host/node/node-groups.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import { fedInformers } from '../../network/dns/harness.ts';

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'he-node-groups-'));
});
after(() => rm(directory, { recursive: true, force: true }));

/** A worker whose node group is `node-config-compute`, in a directory of its own. */
async function host(name: string, overrides: Partial<NodeGroupOptions>) {
  const root = join(directory, name);
  const bootstrap = join(root, 'etc/origin/bootstrap.yaml');
  const settings = settingsOf({
    root,
    bootstrapFile: bootstrap,
    file: { roles: ['worker'] } as never,
    host: {
      defaultRouteLink: 'eth0',
      byLink: [{ link: 'eth0', address: '10.0.0.7' }],
    },
  });
  const { nodeSysconfig, nodeConfig } = settings.paths;
  for (const file of [nodeSysconfig, nodeConfig]) await mkdir(dirname(file), { recursive: true });
  await writeFile(nodeSysconfig, sysconfigOf(settings));
  const fed = fedInformers();
  const groups = fed.of(resources.configMaps);
  const stop = await followHostGroup({
    settings,
    cgroupDriver: 'cgroupfs',
    nodeName: 'n1' as never,
    informers: fed.factory,
    client: {} as ApiClient,
    restartKubelet: async () => {},
    clock: systemClock,
    random: {} as never,
    log: silentLog,
    ...overrides,
  });
  const set = (kubeletArguments: string): void =>
    groups.set({
      metadata: { name: 'node-config-compute', namespace: 'openshift-node' },
      data: { 'node-config.yaml': `apiVersion: v1\nkind: NodeConfig\nkubeletArguments: ${kubeletArguments}\n` },
    });
  return { settings, set, stop };
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = performance.now() + 10_000; !(await holds()); await sleep(20))
    assert.ok(performance.now() < deadline, 'not within 10 s');
}

test('retries to apply a node group when the configuration cannot be written', async () => {
  let restarts = 0;
  const { settings, set, stop } = await host('unwritable', {
    restartKubelet: async () => {
      restarts += 1;
    },
  });
  const { nodeConfig } = settings.paths;
  await mkdir(`${nodeConfig}.new`);
  set('{max-pods: ["33"]}');
  await sleep(300);
  assert.equal(restarts, 0);
  await rmdir(`${nodeConfig}.new`);
  await until(() => restarts === 1);
  assert.match(await readFile(nodeConfig, 'utf8'), /max-pods:\n\s*- "33"/);
  stop();
});

test('retries a failed restart of the kubelet, although the configuration is already written', async () => {
  let attempts = 0;
  const { set, stop } = await host('restart', {
    restartKubelet: async () => {
      attempts += 1;
      if (attempts < 3) throw new Error('port in use');
    },
  });
  set('{max-pods: ["34"]}');
  await until(() => attempts === 3);
  await sleep(600);
  assert.equal(attempts, 3);
  stop();
});

test('keeps the configuration when the text of a node group is invalid, and applies the next text', async () => {
  let restarts = 0;
  const warnings: string[] = [];
  const { set, stop } = await host('invalid', {
    restartKubelet: async () => {
      restarts += 1;
    },
    log: { ...silentLog, warn: (message) => void warnings.push(message) },
  });
  set('{max-pods: [');
  await sleep(500);
  assert.deepEqual([restarts, warnings], [0, ['node group not applied']]);
  set('{max-pods: ["35"]}');
  await until(() => restarts === 1);
  stop();
});
