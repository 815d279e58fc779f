import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { directory, writeDockerArchive } from '../../../build/docker-archive.ts';
import { silentLog } from '../../../src/base/log.ts';
import { trees } from '../../../src/runtime/directory-removal/index.ts';
import { createImageStore } from '../../../src/runtime/images/index.ts';
import { serveLayout, writeLayout } from './registry.ts';

const run = promisify(execFile);

test('a local registry serves the images of the conformance suite to nodes', {
  skip: process.getuid?.() === 0 ? false : 'needs root',
}, async () => {
  const scratch = await mkdtemp(join(tmpdir(), 'he-registry-'));
  const [archive, unpacked, layout] = ['images.tar', 'unpacked', 'layout'].map((name) => join(scratch, name)) as [
    string,
    string,
    string,
  ];
  const pulled: string[] = [];
  try {
    const shared = [directory('etc')];
    const tool = [{ name: 'tool', type: 'file', mode: 0o755, content: Buffer.alloc(300_000, 'x') } as const];
    await writeDockerArchive(archive, [
      { tag: 'registry.test/a/one:1', layers: [shared], config: { Cmd: ['one'] } },
      { tag: 'registry.test/two:2.0', layers: [shared, tool], config: { Cmd: ['two'] } },
    ]);
    await mkdir(unpacked);
    await run('tar', ['-xf', archive, '-C', unpacked]);
    await writeLayout(unpacked, layout, 'registry.test');
    const server = await serveLayout(layout, (image) => pulled.push(image));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
      const store = createImageStore({ root: join(scratch, 'store'), trees, log: silentLog });
      const id = await store.pull(`${host}/two:2.0`, undefined);
      assert.equal((await store.status(`${host}/two:2.0`))?.id, id);
      assert.deepEqual(await store.verify(), []);
      await assert.rejects(store.pull(`${host}/three:1`, undefined), /404/);
      assert.deepEqual(pulled, ['two:2.0']);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
});
