import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { containersRegistries } from '../../../src/host/config/containers-registries.ts';

async function read(files: Readonly<Record<string, string>>) {
  const root = await mkdtemp(join(tmpdir(), 'registries-'));
  try {
    await mkdir(join(root, 'etc/containers'), { recursive: true });
    for (const [name, text] of Object.entries(files)) await writeFile(join(root, 'etc/containers', name), text);
    return await containersRegistries(root);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

test('reads mirrors and insecure registries from registries.conf', async () => {
  assert.deepEqual(await read({}), { mirrors: {}, insecureRegistries: [] });
  const text = `# a comment
unqualified-search-registries = ["docker.io"]

[[registry]]
prefix = "quay.io"
location = "quay.lab:5000" # here
blocked = false
[[registry.mirror]]
location = 'mirror.lab'
insecure = true

[[registry]]
location = "plain.lab:5000"
insecure = true
`;
  assert.deepEqual(
    await read({ 'registries.conf': text, 'policy.json': '{"default":[{"type":"insecureAcceptAnything"}]}' }),
    {
      mirrors: { 'quay.io': ['mirror.lab', 'quay.lab:5000'] },
      insecureRegistries: ['mirror.lab', 'plain.lab:5000'],
    },
  );
});

test('rejects unsupported settings of registries.conf with file and line', async () => {
  const refuses = (name: string, text: string, why: RegExp) => assert.rejects(read({ [name]: text }), why);
  await refuses(
    'registries.conf',
    '[[registry]]\nlocation = "a"\nblocked = true\n',
    /registries\.conf:3: blocked: is not/,
  );
  await refuses(
    'registries.conf',
    '[registries.search]\n',
    /registries\.conf:1: \[registries\.search\]: is not supported/,
  );
  await refuses('registries.conf', '[[registry]]\nlocation = "a.lab/path"\n', /"a\.lab\/path": is not supported/);
  await refuses('registries.conf', '[[registry.mirror]]\n', /before any \[\[registry\]\]/);
  await refuses('registries.conf', 'nonsense\n', /:1: is neither a table nor an assignment/);
  await refuses('policy.json', '{"default":[{"type":"reject"}]}', /policy\.json: type reject: is not supported/);
  await refuses('policy.json', '{', /policy\.json: is not JSON/);
});
