import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { PRODUCT_VERSION } from '../../../src/base/versions/version.ts';
import type { KubeletConfig } from '../../../src/kubelet/config/kubelet-config.ts';
import { nodeAnnotations } from '../../../src/kubelet/node/node-status.ts';
import { startServer } from '../../apiserver/harness.ts';

test('product version is the version in package.json and in the lock file', async () => {
  for (const name of ['package.json', 'package-lock.json']) {
    const { version } = JSON.parse(await readFile(new URL(`../../../${name}`, import.meta.url), 'utf8'));
    assert.equal(version, PRODUCT_VERSION, name);
  }
});

test('product version is an annotation of the Node', () => {
  const config: Pick<KubeletConfig, 'reservedPorts'> = { reservedPorts: [] };
  assert.deepEqual(nodeAnnotations(config), { 'hyperedge.dev/version': PRODUCT_VERSION });
});

test('product version is in the version document of the API server', async () => {
  const server = await startServer();
  try {
    const document = JSON.parse((await server.call('GET', '/version')).text);
    assert.equal(document.hyperedgeVersion, PRODUCT_VERSION);
    assert.match(document.gitVersion, /^v1\./);
  } finally {
    await server.stop();
  }
});
