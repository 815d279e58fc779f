import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchPath } from '../../../../src/kubelet/io/host-facts/index.ts';
import { applyServedConfig } from '../../../../src/openshift/machine-config/daemon/index.ts';
import { createDisk } from '../../../../src/openshift/machine-config/io/disk.ts';
import { createHostFiles } from '../../../../src/openshift/machine-config/io/host-files.ts';
import { createHostKernel } from '../../../../src/openshift/machine-config/io/kernel.ts';
import { createDirectoryWatch } from '../../../../src/openshift/machine-config/io/watch.ts';
import { fileConfig, PREFIX, withWorld } from './harness.ts';

const root = { skip: process.getuid?.() !== 0 };
const source = (value: unknown): string => `data:,${encodeURIComponent(JSON.stringify(value))}`;

/** Response of the machine config server. */
function answer(spec: object, config: object): string {
  const added = [
    ['/etc/machine-config-daemon/node-annotations.json', { [`${PREFIX}currentConfig`]: 'rendered-worker-1' }],
    ['/etc/ignition-machine-config-encapsulated.json', { kind: 'MachineConfig', spec }],
  ] as const;
  const files = added.map(([path, value]) => ({ path, contents: { source: source(value) } }));
  const { storage, ...rest } = config as { storage?: { files: object[] } };
  return JSON.stringify({ ...rest, storage: { files: [...(storage?.files ?? []), ...files] } });
}

test('applies the served config of a new host as its first config, and confirms it after the first start', root, () =>
  withWorld(async (world) => {
    const disk = createDisk(world.root);
    const parts = {
      files: createHostFiles(disk, createDirectoryWatch(world.root, watchPath)),
      kernel: { ...createHostKernel(disk, { programs: false }), bootId: async () => 'boot-1' },
      parse: { inflate: (bytes: Uint8Array) => bytes },
    };
    const units = [{ name: 'a.service', enabled: true, contents: '[Install]\nWantedBy=x.target\n' }];
    const spec = fileConfig({ '/etc/a': 'a' }, { systemd: { units } });
    const text = answer({ kernelType: 'default', kernelArguments: [] }, spec.config ?? {});
    assert.equal(await applyServedConfig(text, parts), 'rendered-worker-1');
    assert.equal(await world.read('etc/a'), 'a');
    assert.equal(await world.read('etc/ignition-machine-config-encapsulated.json'), undefined);
    await applyServedConfig(text, parts);
    const other = text.replaceAll('rendered-worker-1', 'rendered-worker-2');
    await assert.rejects(applyServedConfig(other, parts), /this host already has the configuration rendered-worker-1/);
    world.desire('rendered-worker-1');
    await world.restart();
    await world.until(() => world.annotation('state') === 'Done');
    assert.equal(world.annotation('currentConfig'), 'rendered-worker-1');
    assert.deepEqual(world.steps, ['daemon-reload', 'restart a.service']);
  }),
);

test('rejects an invalid response of the machine config server', root, () =>
  withWorld(async (world) => {
    const disk = createDisk(world.root);
    const parts = {
      files: createHostFiles(disk, createDirectoryWatch(world.root, watchPath)),
      kernel: createHostKernel(disk, { programs: false }),
      parse: { inflate: (bytes: Uint8Array) => bytes },
    };
    const ignition = { version: '3.2.0' };
    await assert.rejects(applyServedConfig('<html>', parts), /machine config server: is not JSON/);
    await assert.rejects(applyServedConfig('{"ignition":{}}', parts), /config\.ignition\.version: /);
    await assert.rejects(
      applyServedConfig(JSON.stringify({ ignition }), parts),
      /the response has no file .*node-annotations/,
    );
    const shadow = answer({}, { ignition, storage: { files: [{ path: '/etc/shadow' }] } });
    await assert.rejects(
      applyServedConfig(shadow, parts),
      /rendered-worker-1: .*\/etc\/shadow: the file contains the accounts of the host/,
    );
  }),
);
