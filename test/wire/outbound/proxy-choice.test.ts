import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type OutboundSettings, proxyFor, settingsFromEnvironment } from '../../../src/wire/outbound/proxy-choice.ts';

const settings = (...noProxy: string[]): OutboundSettings => ({
  httpProxy: 'http://plain.lab:3128',
  httpsProxy: 'http://secure.lab:3128',
  noProxy,
});
const direct = (url: string, ...noProxy: string[]): boolean =>
  proxyFor(new URL(url), settings(...noProxy)) === undefined;

test('selects the HTTP or HTTPS proxy by the URL scheme of the request', () => {
  assert.equal(proxyFor(new URL('http://quay.io/'), settings()), 'http://plain.lab:3128');
  assert.equal(proxyFor(new URL('https://quay.io/'), settings()), 'http://secure.lab:3128');
  assert.equal(proxyFor(new URL('https://quay.io/'), { httpProxy: 'http://plain.lab:3128', noProxy: [] }), undefined);
});

for (const [url, entry, expected] of [
  ['https://mirror.lab/', 'mirror.lab', true],
  ['https://a.mirror.lab/', 'mirror.lab', true],
  ['https://MIRROR.LAB./', 'mirror.lab', true],
  ['https://notmirror.lab/', 'mirror.lab', false],
  ['https://mirror.lab.evil.com/', 'mirror.lab', false],
  ['https://a.lab/', '.lab', true],
  ['https://lab/', '.lab', true],
  ['https://a.lab/', '*.lab', true],
  ['https://a.lab:5000/', 'a.lab:5000', true],
  ['https://a.lab/', 'a.lab:5000', false],
  ['https://a.lab/', 'a.lab:443', true],
  ['https://10.1.2.3/', '10.0.0.0/8', true],
  ['https://11.1.2.3/', '10.0.0.0/8', false],
  ['https://10.1.2.3/', '10.1.2.3', true],
  ['https://10.1.2.3/', '10.1.2.3:443', true],
  ['https://10.1.2.30/', '10.1.2.3', false],
  ['https://[fd00::5]/', 'fd00::/8', true],
  ['https://[fd00:0::5]/', 'fd00::5', true],
  ['https://[fd00::5]:8443/', '[fd00::5]:8443', true],
  ['https://[fd00::5]/', '10.0.0.0/8', false],
  ['https://10.1.2.3/', '10.0.0.0/99', false],
  ['https://10.1.2.3/', '10.0.0.0/', false],
  ['https://quay.io/', '*', true],
] as const) {
  test(`connects to ${url} ${expected ? 'directly' : 'through the proxy'} if noProxy contains ${entry}`, () => {
    assert.equal(direct(url, entry), expected);
  });
}

test('reads proxy variables in lower and upper case, and ignores empty ones', () => {
  assert.deepEqual(
    settingsFromEnvironment({ HTTPS_PROXY: 'http://a:1', https_proxy: 'http://b:1', NO_PROXY: ' x, y z ' }),
    {
      httpsProxy: 'http://b:1',
      noProxy: ['x', 'y', 'z'],
    },
  );
  assert.deepEqual(settingsFromEnvironment({ HTTP_PROXY: '', NO_PROXY: '' }), { noProxy: [] });
});
