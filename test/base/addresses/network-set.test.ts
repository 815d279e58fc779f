import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isInNetwork } from '../../../src/base/addresses/addresses.ts';
import { NetworkSet } from '../../../src/base/addresses/network-set.ts';

test('a set of networks contains the same addresses as a linear check of its networks', () => {
  let state = 7;
  const random = (limit: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * limit);
  };
  const address = (): string =>
    random(2) === 0 ? `10.0.${random(3)}.${random(256)}` : `fd00::${random(3)}:${random(9)}`;
  for (let round = 0; round < 200; round++) {
    const networks = Array.from({ length: random(6) }, () => {
      const base = address();
      return `${base}/${base.includes(':') ? 100 + random(29) : 16 + random(17)}`;
    });
    const plain = address();
    const set = new NetworkSet([...networks, plain, 'invalid', '10.0.0.0/33', '']);
    for (let each = 0; each < 50; each++) {
      const candidate = address();
      const expected = candidate === plain || networks.some((network) => isInNetwork(candidate, network));
      assert.equal(set.has(candidate), expected, `${candidate} in ${networks.join()},${plain}`);
    }
  }
  assert.equal(new NetworkSet(['0.0.0.0/0']).has('255.255.255.255'), true);
  assert.equal(new NetworkSet(['0.0.0.0/0']).has('::1'), false);
  assert.equal(new NetworkSet(['10.0.0.0/8']).has('invalid'), false);
});

test('a set of networks finds an address among thousands of networks without a linear scan', () => {
  const set = new NetworkSet(Array.from({ length: 30_000 }, (_, index) => `192.${index >> 8}.${index & 255}.0/25`));
  const started = performance.now();
  for (let index = 0; index < 1000; index++) assert.ok(!set.has('10.0.0.1') && set.has('192.9.9.9'));
  // A comparison with each network takes 40 s.
  assert.ok(performance.now() - started < 500, `${performance.now() - started} ms`);
});
