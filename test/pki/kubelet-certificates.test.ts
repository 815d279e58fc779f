import assert from 'node:assert/strict';
import { createPrivateKey } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createAuthority, lifetimeFrom } from '../../src/pki/certificate.ts';
import { kubeletCertificates, nodeFiles } from '../../src/pki/index.ts';

test('reads a saved certificate that does not end with a newline', async () => {
  const root = await mkdtemp(join(tmpdir(), 'kubelet-certificates-'));
  try {
    const files = nodeFiles(root);
    const certificates = kubeletCertificates(files, 'server', 'node-a');
    await certificates.request({ dns: ['node-a'], ips: [] });
    const key = createPrivateKey(await readFile(join(files.certificates, 'kubelet-server.key.tmp')));
    const nowMs = Date.now();
    const { certPem } = await createAuthority('node-a', lifetimeFrom(nowMs, 1), key);
    await certificates.save(certPem.trimEnd(), nowMs);
    assert.equal((await certificates.current())?.isOfSigner, true);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
