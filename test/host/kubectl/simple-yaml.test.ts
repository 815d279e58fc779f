import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { simpleYaml } from '../../../src/host/kubectl/simple-yaml.ts';
import { createKubeconfig } from '../../../src/pki/kubeconfig.ts';

const OWN = createKubeconfig({
  server: 'https://127.0.0.1:8443',
  caPem: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
  user: 'system:admin',
  client: { certFile: '/etc/origin/master/admin.crt', keyFile: '/etc/origin/master/admin.key' },
});
/** A kubeconfig as `kubectl config` writes it. */
const KUBECTL = `apiVersion: v1
clusters:
- cluster:
    insecure-skip-tls-verify: true
    server: https://example:6443
  name: "first"
contexts: []
current-context: ""
kind: Config
preferences: {}
users:
- name: 'admin'
  user:
    token: abc.DEF-123_4
`;

test('parses the YAML that this product and kubectl write', () => {
  for (const text of [OWN, KUBECTL, `---\n# comment\n${KUBECTL}`])
    assert.deepEqual(simpleYaml(text)?.value, parse(text));
});

test('passes all other YAML to the complete parser', () => {
  const texts = [
    '',
    'a: 1',
    'a: 1e-5',
    'a: yes',
    'a: ~',
    'a: &x b',
    'a: *x',
    'a: |\n  b',
    'a: "\\n"',
    'a: b #c',
    '{a: b}',
  ];
  const more = [
    'a: b\n c',
    'a: b\n---\na: c',
    'a: b\na: c',
    'a:\tb',
    'a: b\r\n',
    'a: b: c',
    '? a',
    'a: é',
    '- - b',
    'a: !!str b',
  ];
  for (const text of [...texts, ...more]) assert.equal(simpleYaml(text), undefined, JSON.stringify(text));
});

test('the simple parser returns the same document as the complete parser or leaves the text to it', () => {
  const pieces = [
    ' ',
    '  ',
    '\n',
    '- ',
    ': ',
    ':',
    '"',
    "'",
    '#',
    '---',
    '{}',
    '[]',
    'true',
    'null',
    '1',
    '1-2',
    '~',
    'a',
    'a: b',
  ];
  let state = 7;
  const next = (limit: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return (state >> 8) % limit;
  };
  let read = 0;
  for (let round = 0; round < 30_000; round += 1) {
    let text = [OWN, KUBECTL, 'a: b\nc:\n- d: e\n  f: g\n'][next(3)] as string;
    for (let change = next(3) + 1; change > 0; change -= 1) {
      const at = next(text.length);
      text = text.slice(0, at) + pieces[next(pieces.length)] + text.slice(at + next(4));
    }
    const simple = simpleYaml(text);
    if (simple === undefined) continue;
    read += 1;
    assert.deepEqual(simple.value, parse(text, { logLevel: 'silent' }), JSON.stringify(text));
  }
  assert.ok(read > 1_000, `${read} documents were simple`);
});
