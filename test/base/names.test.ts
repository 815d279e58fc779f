import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  configMapKeyErrors,
  dns1035LabelErrors,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  environmentNameErrors,
  labelValueErrors,
  pathSegmentErrors,
  portNameErrors,
  qualifiedNameErrors,
  wildcardSubdomainErrors,
} from '../../src/base/names.ts';

const RULES: readonly [(value: string) => string[], string[], string[]][] = [
  [dns1123LabelErrors, ['a', 'ab', '1', '0-a', 'a'.repeat(63)], ['', '-', 'A', 'a.b', 'a-', '_', 'a'.repeat(64)]],
  [
    dns1123SubdomainErrors,
    ['a', 'a.b', '1.2.a-b', `${'a'.repeat(63)}.${'b'.repeat(63)}`],
    ['', 'A.b', 'a..b', '.a', 'a.', 'a_b', 'a'.repeat(254)],
  ],
  [dns1035LabelErrors, ['a', 'a-1'], ['', '1a', 'A', 'a-', 'a.b']],
  [wildcardSubdomainErrors, ['*.a', '*.a.b'], ['*', '*.', '*a.b', 'a.*', '*.*.a']],
  [
    qualifiedNameErrors,
    ['a', 'A', 'a.b_c-1', 'x.io/A', '1/b'],
    ['', '/a', 'a/', 'A.io/a', 'a/b/c', '-a', 'a'.repeat(64), 'a b'],
  ],
  [labelValueErrors, ['', 'a', 'A_b.c-1'], ['-', 'a b', 'a/b', 'a'.repeat(64)]],
  [configMapKeyErrors, ['a', '.a', 'A_b-c.d'], ['', '.', '..', '..a', 'a/b', 'a b']],
  [environmentNameErrors, ['A', 'a.b-c', '1a', 'a b'], ['', 'a=b', 'ä', 'a\n']],
  [portNameErrors, ['http', 'a1', '1a'], ['', '80', 'a--b', '-a', 'A', 'a'.repeat(16)]],
  [pathSegmentErrors, ['a', 'system:x', 'A b'], ['.', '..', 'a/b', 'a%b']],
];

test('accepts and rejects the same names as upstream', () => {
  for (const [rule, good, bad] of RULES) {
    for (const value of good) assert.deepEqual(rule(value), [], `${rule.name} ${value}`);
    for (const value of bad) assert.notDeepEqual(rule(value), [], `${rule.name} ${JSON.stringify(value.slice(0, 80))}`);
  }
});

test("errors of names have upstream's messages", () => {
  assert.deepEqual(labelValueErrors('c%c'), [
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
  ]);
  assert.deepEqual(configMapKeyErrors('a*b'), [
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
  ]);
  assert.deepEqual(dns1123SubdomainErrors('A_b'), [
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
  ]);
});

test('validates hostile names in linear time', () => {
  const started = performance.now();
  for (const [rule] of RULES) {
    rule(`${'a-'.repeat(200_000)}!`);
    rule('a.'.repeat(200_000));
  }
  assert.ok(performance.now() - started < 2000);
});
