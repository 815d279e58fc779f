/**
 * Classification of addresses in every spelling, compared with the host parser of URLs, which reads IPv4 as
 * inet_aton(3) does.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AddressKind, AddressSet, addressKind, isAddress } from '../../../src/base/addresses/destinations.ts';
import { randomOf } from '../../api/schema/random.ts';

const KINDS: Readonly<Record<AddressKind, readonly string[]>> = {
  loopback: [
    ...[
      '127.0.0.1',
      '127.255.255.255',
      '127.1',
      '127.0.0',
      '0x7f.1',
      '0177.0.0.1',
      '2130706433',
      '0x7F000001',
      '017700000001',
    ],
    ...['::1', '[::1]', '::1%lo', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::FFFF:7f00:1', '::7f00:1'],
    ...['::ffff:0:7f00:1', '64:ff9b::7f00:1', '64:ff9b::127.0.0.1', '64:ff9b:1::7f00:1', '64:ff9b:1:7f00:0:100::'],
    ...['2002:7f00:1::', '2001:0:1:2:3:4:80ff:fffe', 'fd00::5efe:127.0.0.1', 'fd00::200:5efe:7f00:1'],
  ],
  'link-local': [
    ...['169.254.169.254', '0xa9fea9fe', '2852039166', '169.254.43518', '169.16689662', 'fe80::1', 'febf::1'],
    ...['fe80::1%eth0', '[fe80::1%25eth0]', '::ffff:a9fe:a9fe', '::ffff:169.254.169.254', '::a9fe:a9fe'],
    ...['64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::1', 'fd00:ec2::254'],
  ],
  invalid: [
    ...['0.0.0.0', '0', '0.1.2.3', '::', '::%1', '255.255.255.255', '224.0.0.1', '239.1.1.1', 'ff02::1', '::ffff:0:0'],
    ...['', 'localhost', '127.0.0.1.', 'example.com', '1.2.3.4.5', '256.1.1.1', '1.2.3.256', '08.1.1.1', '0x'],
    ...['::ffff:1.2.3', '1:2:3', '127.0.0.1%lo', '10.0.0.1/8', ' 10.0.0.1'],
  ],
  unicast: [
    ...['10.0.0.1', '172.30.0.1', '126.255.255.255', '128.0.0.1', '169.253.0.1', '240.0.0.1', '012.1'],
    ...['2001:db8::1', 'fd00::1', 'fec0::1', '::ffff:10.0.0.1', '64:ff9b::a00:1', '2002:a00:1::', 'fd00:ec2::255'],
  ],
};

test('classifies an address by its bytes, independent of its spelling', () => {
  for (const [kind, texts] of Object.entries(KINDS)) {
    for (const text of texts) assert.equal(addressKind(text), kind, text);
  }
  assert.deepEqual(['10.1', '[::1]', 'localhost', '10.0.0.1.nip.io', 'a:b'].map(isAddress), [
    true,
    true,
    false,
    false,
    false,
  ]);
});

test('parses legacy IPv4 spellings like URLs', () => {
  const random = randomOf(11);
  const below = (limit: number): number => Math.floor(random() * limit);
  for (let run = 0; run < 20_000; run++) {
    const bytes = [127, 169, 10, 224, 0, 172][below(6)] ?? 0;
    const all = [bytes, below(256), below(256), below(256)];
    const count = 1 + below(4);
    const tail = all.slice(count - 1).reduce((sum, byte) => sum * 256 + byte, 0);
    const spelled = [...all.slice(0, count - 1), tail].map((part) => {
      const base = below(3);
      return base === 0 ? String(part) : base === 1 ? `0x${part.toString(16)}` : `0${part.toString(8)}`;
    });
    const text = spelled.join('.');
    const plain = new URL(`http://${text}/`).hostname;
    assert.equal(plain, all.join('.'), text);
    const kind = addressKind(plain);
    assert.equal(addressKind(text), kind, text);
    const [high, low] = [all.slice(0, 2), all.slice(2)].map(([a = 0, b = 0]) => (a * 256 + b).toString(16));
    const set = new AddressSet([plain]);
    for (const carried of [
      `::ffff:${high}:${low}`,
      `64:ff9b::${high}:${low}`,
      `2002:${high}:${low}::9`,
      `::ffff:0:${plain}`,
    ]) {
      assert.equal(addressKind(carried), kind, carried);
      assert.ok(set.has(carried), carried);
    }
    assert.ok(set.has(text), text);
  }
});

test('finds addresses in a set also when they are embedded in IPv6 addresses', () => {
  const set = new AddressSet(['172.30.0.0/16', '10.0.0.7', '2001:db8:1::/48', 'nothing', '10.0.0.0/x']);
  for (const inside of [
    '172.30.0.1',
    '172.30.255.255',
    '::ffff:ac1e:1',
    '64:ff9b::ac1e:1',
    '0xac1e0001',
    '10.0.0.7',
    '2001:db8:1:ffff::1',
  ])
    assert.ok(set.has(inside), inside);
  for (const outside of ['172.31.0.1', '10.0.0.8', '2001:db8:2::', '::ac1f:1', '', 'nothing'])
    assert.ok(!set.has(outside), outside);
});
