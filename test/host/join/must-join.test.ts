import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { loadSettings } from '../../../src/host/config/settings.ts';
import { mustJoin } from '../../../src/host/join/join.ts';
import { nodeFiles } from '../../../src/pki/index.ts';

test('a host whose credentials cannot be read does not join again', async () => {
  const root = await mkdtemp(join(tmpdir(), 'he-must-join-'));
  try {
    const settings = await loadSettings({ root });
    const { bootstrapKubeconfig, kubeconfig } = nodeFiles(root);
    await mkdir(dirname(kubeconfig), { recursive: true });
    await mkdir(dirname(bootstrapKubeconfig), { recursive: true });
    assert.equal(await mustJoin(settings), false);
    await writeFile(bootstrapKubeconfig, '');
    assert.equal(await mustJoin(settings), true);
    // The link leads to itself, so the file exists, but a lookup fails.
    await symlink(kubeconfig, kubeconfig);
    await assert.rejects(mustJoin(settings), /ELOOP/);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
