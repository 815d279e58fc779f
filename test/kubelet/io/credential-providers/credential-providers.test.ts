import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../../../src/base/log.ts';
import { createCredentialProviders } from '../../../../src/kubelet/io/credential-providers/index.ts';
import { matchesImage, registryImage } from '../../../../src/kubelet/io/credential-providers/match.ts';

test('credential providers match image patterns as upstream documents them', () => {
  const image = (name: string): string => registryImage(name);
  assert.ok(matchesImage('*.lab.example', image('registry.lab.example/a:1')));
  assert.ok(!matchesImage('*.lab.example', image('a.registry.lab.example/a:1')));
  assert.ok(matchesImage('registry*.lab.example/team', image('registry2.lab.example/team/a@sha256:00')));
  assert.ok(!matchesImage('lab.example:5000', image('lab.example/a')));
  assert.ok(matchesImage('docker.io', image('busybox')));
});

test("caches a plug-in's response for its lifetime, and returns no credentials after a plug-in failure", async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-credentials-'));
  try {
    const response = {
      apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
      kind: 'CredentialProviderResponse',
      cacheKeyType: 'Registry',
      cacheDuration: '10s',
      auth: {
        'lab.example': { username: 'u', password: 'p' },
        'lab.example/private': { username: 'q', password: 'r' },
      },
    };
    const program = `#!/bin/sh\ncat >> ${directory}/requests\necho >> ${directory}/requests\necho '${JSON.stringify(response)}'\n`;
    await writeFile(join(directory, 'good'), program, { mode: 0o755 });
    await writeFile(join(directory, 'bad'), '#!/bin/sh\nexit 3\n', { mode: 0o755 });
    let nowMs = 0;
    const provider = (name: string) => ({
      name,
      apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
      matchImages: ['lab.example'],
      defaultCacheDurationMs: 0,
      args: [],
      env: {},
    });
    const providers = createCredentialProviders({
      directory,
      providers: [provider('bad'), provider('good')],
      nowMs: () => nowMs,
      log: silentLog,
    });
    assert.deepEqual(await providers.find('lab.example/a:1'), { username: 'u', password: 'p' });
    assert.deepEqual(await providers.find('lab.example/private/b:1'), { username: 'q', password: 'r' });
    assert.equal(await providers.find('other.example/a:1'), undefined);
    nowMs = 10_001;
    await providers.find('lab.example/a:1');
    const requested = (await readFile(join(directory, 'requests'), 'utf8')).trim().split('\n');
    assert.equal(requested.length, 2);
    assert.deepEqual(JSON.parse(requested[0] ?? ''), {
      kind: 'CredentialProviderRequest',
      apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
      image: 'lab.example/a',
    });
  } finally {
    await rm(directory, { recursive: true });
  }
});
