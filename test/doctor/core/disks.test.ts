import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHECKS, diagnose } from '../../../src/doctor/core/index.ts';
import { gathered, HEALTHY } from '../facts.ts';

const GIB = 2 ** 30;

/** Evidence about mounts of 100 GiB, each given with its free space in GiB and the content of its areas. */
function evidence(mounts: Readonly<Record<string, { readonly free: number; readonly content: readonly string[] }>>) {
  const areas = Object.entries(mounts).flatMap(([mount, { free, content }]) =>
    content.flatMap((what) =>
      HEALTHY.areas.map((each) => ({ ...each, what, mount, bytes: 100 * GIB, freeBytes: free * GIB })),
    ),
  );
  const [report] = diagnose(
    CHECKS.filter(({ id }) => id === 'disk-space'),
    gathered({ areas }),
  );
  return report?.findings.map(({ result, evidence: text }) => [result, text.replace(/ of .* free/, '')]);
}

test('reports evictions below 15 % on the disk of the images and below 10 % on the disk of the pods', () => {
  assert.deepEqual(evidence({ '/': { free: 14, content: ['state of pods', 'images', 'logs'] } }), [
    ['warning', '/ has 14.0 GiB (14 %): pods are evicted'],
  ]);
  assert.deepEqual(
    evidence({ '/': { free: 14, content: ['state of pods'] }, '/i': { free: 16, content: ['images'] } }),
    [['ok', 'least free: 14.0 GiB on /']],
  );
  assert.deepEqual(
    evidence({ '/': { free: 9, content: ['state of pods'] }, '/i': { free: 14, content: ['images'] } }),
    [
      ['warning', '/i has 14.0 GiB (14 %): pods are evicted'],
      ['warning', '/ has 9.0 GiB (9 %): pods are evicted'],
    ],
  );
  assert.deepEqual(evidence({ '/var/log': { free: 9, content: ['logs'] } }), [
    ['warning', '/var/log has 9.0 GiB (9 %)'],
  ]);
});
