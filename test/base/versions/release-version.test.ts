import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  compareReleases,
  isMinorChange,
  isReleaseVersion,
  oldestVersion,
} from '../../../src/base/versions/release-version.ts';

test('orders versions like semver.org section 11', () => {
  const ordered = ['1.0.0-alpha', '1.0.0-alpha.1', '1.0.0-alpha.beta', '1.0.0-beta', '1.0.0-beta.2', '1.0.0-beta.11'];
  const all = [...ordered, '1.0.0-rc.1', '1.0.0', '2.0.0', '2.1.0', '2.1.1', '2.10.0'];
  for (const [index, a] of all.entries())
    for (const [other, b] of all.entries()) assert.equal(Math.sign(compareReleases(a, b)), Math.sign(index - other));
  assert.equal(oldestVersion(['2.10.0', '2.9.0']), '2.9.0');
  assert.ok(compareReleases('nonsense', '0.0.0') < 0);
});

test('rejects versions that are not safe as file or object names', () => {
  for (const text of [
    '../1.0.0',
    '1.0.0/..',
    '1.0',
    'v1.0.0',
    '1.0.0+b',
    '1.0.0-A',
    '01.0.0',
    '',
    `1.0.0-${'a'.repeat(64)}`,
  ])
    assert.equal(isReleaseVersion(text), false, text);
  assert.equal(isReleaseVersion('1.20.3-rc.1'), true);
});

test('a patch release is not a minor version change', () => {
  assert.equal(isMinorChange('1.2.3', '1.2.9'), false);
  assert.equal(isMinorChange('1.2.3', '1.3.0'), true);
  assert.equal(isMinorChange('1.2.3', '2.2.3'), true);
});
