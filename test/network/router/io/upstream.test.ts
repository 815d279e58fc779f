import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Upstreams } from '../../../../src/network/router/io/upstream.ts';

test('parses the CA of a route once for all connections to its servers', () => {
  const upstreams = new Upstreams();
  const optionsOf = (ca: string | undefined) =>
    upstreams.tlsOptions({ upstream: { tls: true, ca, serverName: 'a.test' } } as never);
  const first = optionsOf('-----BEGIN CERTIFICATE-----\n');
  assert.ok(first.secureContext !== undefined);
  assert.equal(optionsOf('-----BEGIN CERTIFICATE-----\n').secureContext, first.secureContext);
  assert.notEqual(optionsOf('other').secureContext, first.secureContext);
  assert.equal(optionsOf(undefined).checkServerIdentity, undefined);
  upstreams.close();
});
