import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHECKS, diagnose, summarize } from '../../../src/doctor/core/index.ts';
import { preflight, requirePassed } from '../../../src/host/doctor/preflight.ts';
import { gathered, HEALTHY } from '../../doctor/facts.ts';

const report = (changed: Parameters<typeof gathered>[0]) =>
  summarize(
    diagnose(
      CHECKS.filter((each) => each.preflight),
      gathered(changed),
    ),
    { host: 'pi-1', version: '1', time: 't' },
  );
const noMemory = { cgroups: { ...HEALTHY.cgroups, known: [{ name: 'memory', enabled: false }], v2: undefined } };

test('errors stop an installation with their fix, and warnings are printed', () => {
  const notes: string[] = [];
  const faults = { ...noMemory, entropy: { available: 1, generator: undefined } };
  assert.throws(
    () => requirePassed(report(faults), [], (text) => notes.push(text)),
    /memory-cgroup: the memory controller is disabled; fix: .*cgroup_enable=memory/,
  );
  assert.equal(notes.filter((note) => note.startsWith('warning entropy: ')).length, 1);
});

test('an ignored check does not stop an installation', () => {
  const notes: string[] = [];
  requirePassed(report(noMemory), ['memory-cgroup', 'cgroup-layout'], (text) => notes.push(text));
  assert.ok(notes.some((note) => note.startsWith('error memory-cgroup: ')));
});

test('a fact that cannot be gathered does not stop an installation', () => {
  const facts = { ...gathered(), areas: { state: 'failed', reason: 'no answer within 5 s' } as const };
  const checks = diagnose(
    CHECKS.filter((each) => each.preflight),
    facts,
  );
  requirePassed(summarize(checks, { host: 'pi-1', version: '1', time: 't' }), [], () => {});
});

test('rejects an unknown name of a check to ignore', async () => {
  await assert.rejects(
    preflight({ root: '/', ignore: ['no-such-check'], note: () => {} }),
    /no check is called no-such-check/,
  );
});
