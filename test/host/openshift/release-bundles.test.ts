/** An executable of a bundle may be named without a directory, as the pages do. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createOfflineBundle } from '../../../src/host/openshift/release-bundles.ts';

test('reads the version of an executable in the working directory', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'bundles-'));
  const before = process.cwd();
  try {
    process.chdir(directory);
    const { privateKey } = generateKeyPairSync('ed25519');
    await writeFile('site.key', privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
    const answer = JSON.stringify({ hyperedge: '0.9.0', kubernetes: 'v1.36.0' });
    await writeFile('program', `#!/bin/sh\necho '${answer}'\n`, { mode: 0o755 });
    const options = { packages: [], images: [], manifests: [], join: undefined };
    const executables = new Map([[process.arch, 'program']]);
    const made = await createOfflineBundle({ ...options, bundle: 'site.offline', key: 'site.key', executables });
    assert.equal(made.version, '0.9.0');
  } finally {
    process.chdir(before);
    await rm(directory, { recursive: true });
  }
});
