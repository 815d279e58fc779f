import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validateEndpointIp } from '../../../src/api/kinds/network/endpointslices/addresses.ts';

test('rejects loopback and link-local endpoint addresses in every spelling', () => {
  const why = (ip: string): string =>
    /may not be (?:in the )?([\w-]+(?: multicast)?)/.exec(validateEndpointIp(ip, 'ip')[0]?.message ?? '')?.[1] ?? '';
  for (const [kind, addresses] of Object.entries({
    '': ['10.0.0.1', '2001:db8::1', '::ffff:10.0.0.1', '224.0.1.1', 'ff05::1', '255.255.255.255'],
    unspecified: ['0.0.0.0', '::', '0:0:0:0:0:0:0:0', '::ffff:0.0.0.0'],
    loopback: ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '64:ff9b::7f00:1'],
    'link-local': ['169.254.169.254', 'fe80::1', 'febf::1', '::ffff:a9fe:a9fe'],
    'link-local multicast': ['224.0.0.251', 'ff02::fb', '::ffff:e000:fb'],
  }))
    for (const address of addresses) assert.equal(why(address), kind, address);
});
