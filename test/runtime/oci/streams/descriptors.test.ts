import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

test('reports programs that cannot start for lack of file descriptors without ending the host process', async () => {
  const child = fileURLToPath(import.meta.resolve('./descriptors.child.ts'));
  const limited = ['-c', 'ulimit -n 256; exec "$0" "$1"', process.execPath, child];
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = await promisify(execFile)('sh', limited, { env, timeout: 30_000 });
  const errors = JSON.parse(stdout) as Record<string, string>;
  const names = [
    'container monitor',
    'network tool',
    'lock',
    'kernel monitor',
    'journal',
    'user namespace',
    'attributes',
    'port forwarding',
    'checks of the host',
    'program of a support bundle',
  ];
  assert.deepEqual(Object.keys(errors).sort(), names.sort());
  for (const [name, message] of Object.entries(errors)) assert.match(message, /EMFILE/, name);
});
