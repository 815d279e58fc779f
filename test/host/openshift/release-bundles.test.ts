/** An executable of a bundle may be named without a directory, as the pages do. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
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
    await writeFile('program', `#!/bin/sh\necho "$@" > started\necho '${answer}'\n`, { mode: 0o755 });
    const options = { packages: [], images: [], manifests: [], join: undefined };
    const executables = new Map([[process.arch, 'program']]);
    // The script is started for its version. It is rejected afterwards, because it is no ELF file.
    await assert.rejects(
      createOfflineBundle({ ...options, bundle: 'site.offline', key: 'site.key', executables }),
      /program is not an executable for /,
    );
    assert.equal(await readFile('started', 'utf8'), 'version -o json\n');
  } finally {
    process.chdir(before);
    await rm(directory, { recursive: true });
  }
});
