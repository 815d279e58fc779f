/** Status of encryption at rest on a host that does not encrypt its objects. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { main } from '../../../../src/cli/index.ts';
import { masterConfigOf } from '../../../../src/host/config/generate.ts';
import { writeGenerated } from '../../../../src/host/config/generated-file.ts';
import { settingsOf } from '../../../../src/host/config/settings.ts';

test('reports that encryption is off, without an error', async () => {
  const root = await mkdtemp(join(tmpdir(), 'encrypt-status-'));
  let stdout = '';
  let stderr = '';
  const run = async (...flags: string[]): Promise<number> => {
    stdout = '';
    const argv = ['secrets-encrypt', 'status', '--root', root, ...flags];
    const out = {
      stdout: (text: string | Uint8Array) => {
        stdout += String(text);
      },
      stderr: (text: string | Uint8Array) => {
        stderr += String(text);
      },
    };
    return main({ argv, argv0: 'hyperedge', out });
  };
  try {
    const settings = settingsOf({
      root,
      bootstrapFile: join(root, 'etc/origin/bootstrap.yaml'),
      host: { defaultRouteLink: 'eth0', byLink: [{ link: 'eth0', address: '10.0.0.7' }] },
    });
    await writeGenerated(join(root, 'etc/origin/master/master-config.yaml'), masterConfigOf(settings));
    assert.equal(await run(), 0);
    assert.match(stdout, /^Encryption at rest is off: all objects are stored as plain text\. /);
    assert.equal(stderr, '');
    assert.equal(await run('-o', 'json'), 0);
    assert.deepEqual(JSON.parse(stdout), { configured: false });
  } finally {
    await rm(root, { recursive: true });
  }
});
