/** Canonical addresses, compared with the host parser of URLs; both follow RFC 5952. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressNameErrors, canonicalAddress, peerAddress } from '../../../src/base/addresses/addresses.ts';
import { randomOf } from '../../api/schema/random.ts';

test('formats IPv6 addresses in the canonical form of the URL standard', () => {
  const random = randomOf(7);
  for (let run = 0; run < 2000; run++) {
    const groups = Array.from({ length: 8 }, () => (random() < 0.5 ? 0 : Math.floor(random() * 0x10000)));
    if (groups.slice(0, 5).every((each) => each === 0)) groups[0] = 0xfd00;
    const long = groups.map((each) => each.toString(16).padStart(4, '0').toUpperCase()).join(':');
    const expected = new URL(`http://[${long}]/`).hostname.slice(1, -1);
    assert.equal(canonicalAddress(long), expected, long);
    assert.equal(canonicalAddress(expected), expected, long);
  }
});

test('canonicalizes IPv4-mapped and similar addresses', () => {
  for (const [text, canonical] of [
    ['10.0.0.7', '10.0.0.7'],
    ['010.0.0.7', undefined],
    ['::', '::'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['1::', '1::'],
    ['::FFFF:1.2.3.4', '::ffff:1.2.3.4'],
    ['64:ff9b::1.2.3.4', '64:ff9b::102:304'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['fe80::1%eth0', undefined],
  ] as const) {
    assert.equal(canonicalAddress(text), canonical, text);
  }
  assert.deepEqual(addressNameErrors('10.0.0.7'), []);
  assert.deepEqual(addressNameErrors('::0'), ['must be a canonical format IP address']);
  assert.deepEqual(addressNameErrors('web'), ['ParseAddr("web"): unable to parse IP']);
});

test('formats the address of a peer identically with and without IPv4 mapping, zone and zeros', () => {
  for (const [text, address] of [
    ['10.0.0.7', '10.0.0.7'],
    ['::ffff:10.0.0.7', '10.0.0.7'],
    ['::FFFF:a00:7', '10.0.0.7'],
    ['0:0:0:0:0:ffff:10.0.0.7', '10.0.0.7'],
    ['::ffff:010.0.0.7', '::ffff:010.0.0.7'],
    ['FE80:0::1%eth0', 'fe80::1'],
    ['@', '@'],
  ] as const) {
    assert.equal(peerAddress(text), address, text);
  }
});
