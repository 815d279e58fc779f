import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostOfUrl, portOfUrl } from '../../../src/base/addresses/url-endpoint.ts';

test('returns IPv6 addresses without brackets, and names unchanged', () => {
  assert.equal(hostOfUrl(new URL('https://[fd00::1]:8443/x')), 'fd00::1');
  assert.equal(hostOfUrl(new URL('https://10.0.0.1')), '10.0.0.1');
  assert.equal(hostOfUrl(new URL('https://edge-1.lab')), 'edge-1.lab');
});

test('returns the port of the URL, or the default port of its scheme', () => {
  assert.equal(portOfUrl(new URL('https://a:8443')), 8443);
  assert.equal(portOfUrl(new URL('https://a')), 443);
  assert.equal(portOfUrl(new URL('http://a')), 80);
  assert.equal(portOfUrl(new URL('socks5://a')), 1080);
  assert.equal(portOfUrl(new URL('socks5h://a')), 1080);
});
