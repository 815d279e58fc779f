import assert from 'node:assert/strict';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createKubeletFiles } from '../../../src/kubelet/io/files/index.ts';
import { createMounter } from '../../../src/kubelet/io/host-facts/index.ts';
import { terminationMessage } from '../../../src/kubelet/pods/containers/termination-message.ts';
import type { ContainerStatus } from '../../../src/runtime/port.ts';

test('reads the first 4 KB of a termination message and truncates the file to 4 KB', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'kubelet-message-'));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, 'message');
  await writeFile(path, `${'a'.repeat(4096)}${'b'.repeat(1 << 20)}`);
  const files = createKubeletFiles(createMounter());
  const status = { annotations: {}, exitCode: 0, message: 'other' } as unknown as ContainerStatus;
  assert.equal(await terminationMessage(files, status, path), 'a'.repeat(4096));
  assert.equal((await stat(path)).size, 4096);
  assert.equal(await terminationMessage(files, status, path), 'a'.repeat(4096));
});
