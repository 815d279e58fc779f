import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import '../../src/base/short-buffers.ts';

const RUNS = 4;

it('writes strings to short buffers while collections move the strings', { timeout: 120_000 }, () => {
  const child = fileURLToPath(new URL('short-buffers.child.ts', import.meta.url));
  // Whether V8 passes an address depends on its optimizations, so an unprotected process does not crash in every run.
  for (let run = 0; run < RUNS; run++) {
    // Without a core file if the process crashes.
    const { status, signal } = spawnSync('sh', ['-c', 'ulimit -c 0; exec "$0" "$1"', process.execPath, child]);
    assert.deepEqual({ status, signal }, { status: 0, signal: null });
  }
});

it('keeps the meaning of the arguments of write', () => {
  const buffer = Buffer.alloc(8);
  assert.equal(buffer.write('ab'), 2);
  assert.equal(buffer.write('é', 'latin1'), 1);
  assert.equal(buffer.write('xyz', 2, 'ascii'), 3);
  assert.equal(buffer.write('0123456789', 5, 2), 2);
  assert.equal(buffer.write('ff', 7, 1, 'hex'), 1);
  assert.deepEqual([...buffer], [0xe9, 0x62, 0x78, 0x79, 0x7a, 0x30, 0x31, 0xff]);
  assert.throws(() => buffer.write('a', 9), RangeError);
});
