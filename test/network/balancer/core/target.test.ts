import assert from 'node:assert/strict';
import { it } from 'node:test';
import { isRemote, parseTarget, targetOfUrl, targetText } from '../../../../src/network/balancer/core/index.ts';

it('parses server addresses and names with a port, and rejects other texts', () => {
  assert.deepEqual(parseTarget('10.0.0.5:8443'), { host: '10.0.0.5', port: 8443 });
  assert.deepEqual(parseTarget('[fd00::5]:8443'), { host: 'fd00::5', port: 8443 });
  assert.deepEqual(parseTarget('master-1.lab:443'), { host: 'master-1.lab', port: 443 });
  for (const text of [
    '',
    'a',
    'a:',
    ':1',
    'a:0',
    'a:65536',
    'a:1:2',
    'fd00::5:8443',
    'a b:1',
    '[x]:1',
    'a:1\n',
    '-a:1',
  ])
    assert.equal(parseTarget(text), undefined, JSON.stringify(text));
});

it('formatting a parsed server address yields the original text', () => {
  for (const text of ['10.0.0.5:8443', '[fd00::5]:1', 'master-1.lab:443']) {
    const target = parseTarget(text);
    assert.ok(target);
    assert.equal(targetText(target), text);
  }
});

it('reads the address and port of a server URL', () => {
  assert.equal(targetOfUrl('https://10.0.0.5:8443'), '10.0.0.5:8443');
  assert.equal(targetOfUrl('https://[fd00::5]:8443/'), '[fd00::5]:8443');
  assert.equal(targetOfUrl('https://master'), 'master:443');
  assert.equal(targetOfUrl('http://10.0.0.5:8443'), undefined);
  assert.equal(targetOfUrl('https://10.0.0.5:8443/path'), undefined);
});

it('accepts only server addresses that can belong to another host', () => {
  assert.equal(isRemote('10.0.0.5:8443'), true);
  assert.equal(isRemote('[fd00::5]:8443'), true);
  for (const text of [
    '127.0.0.1:8443',
    '[::1]:8443',
    '169.254.169.254:80',
    '[::ffff:127.0.0.1]:1',
    '0.0.0.0:1',
    'name:1',
  ])
    assert.equal(isRemote(text), false, text);
});
