import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspected } from '../../../src/host/controllers/machines.ts';

const ARCH = process.arch === 'arm64' ? 'aarch64' : 'x86_64';

test('sanitizes the facts that a host reports over SSH', () => {
  assert.deepEqual(inspected(`${ARCH}\n4\nrack-3\nMemTotal:  8388608 kB\n`), {
    hostname: 'rack-3',
    ramMebibytes: 8192,
    cpu: { arch: ARCH, count: 4 },
  });
  for (const count of ['Infinity', '-1', '1e300', '', 'NaN', '0x10'])
    assert.equal(inspected(`${ARCH}\n${count}\nh\n\n`).cpu?.count, 1, count);
  const { hostname, ramMebibytes } = inspected(`${ARCH}\n1\n\u001b]0;x\u0007${'n'.repeat(1 << 20)}\nMemTotal: x kB`);
  assert.match(hostname ?? '', /^[\x20-\x7e]{1,63}$/);
  assert.equal(ramMebibytes, 0);
  assert.throws(
    () => inspected(`\u001b[2J${'a'.repeat(1 << 20)}\n1\n${'h'.repeat(1 << 20)}`),
    (error: Error) => error.message.length < 400 && !/\p{C}/u.test(error.message),
  );
});
