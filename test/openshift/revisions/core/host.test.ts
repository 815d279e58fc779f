import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  EMPTY_STATE,
  type HostAction,
  type HostRevision,
  type HostState,
  type HostView,
  hostStep,
  installed,
  prunedHere,
  referredFiles,
  succeeded,
  withFallback,
} from '../../../../src/openshift/revisions/core/index.ts';

const T0 = 1_800_000_000_000;

const revision = (number: number, outcome: HostRevision['outcome'] = 'good', content = 'a'): HostRevision => ({
  revision: number,
  digest: content,
  restartDigest: content,
  overlay: '',
  reason: '',
  atMs: T0,
  outcome,
});

const view = (more: Partial<HostView> = {}): HostView => ({
  trialForMs: 0,
  digest: 'a',
  restartDigest: 'a',
  changed: [],
  apiAwayMs: 0,
  isStarting: false,
  health: { state: 'healthy', message: '' },
  ...more,
});

const running: HostState = { current: 1, revisions: [revision(1)] };
const onTrial: HostState = { current: 2, revisions: [revision(1), revision(2, 'trial', 'b')], trial: { sinceMs: T0 } };
const failed = withFallback(onTrial, 1, 'down', T0);
const target = (number: number, more: Partial<NonNullable<HostView['target']>> = {}) => ({
  revision: number,
  overlay: '',
  reason: 'why',
  knownFailures: 0,
  ...more,
});
const typeOf = (action: HostAction): string => (action.type === 'install' ? `install ${action.revision}` : action.type);

test('a host creates revision 1 of the control plane at its first start', () => {
  assert.deepEqual(hostStep(EMPTY_STATE, view()), {
    type: 'install',
    revision: 1,
    overlay: '',
    reason: 'initial revision',
    restart: false,
  });
});

test('installs a requested revision, and restarts the component only if files differ that are read at start', () => {
  const same = hostStep(running, view({ target: target(2) }));
  assert.deepEqual(same, { type: 'install', revision: 2, overlay: '', reason: 'why', restart: false });
  const forced = hostStep(running, view({ target: target(2, { overlay: '{"forceRedeploymentReason":"x"}' }) }));
  assert.equal(forced.type === 'install' && forced.restart, true);
  const file = hostStep(running, view({ target: target(2), digest: 'b', restartDigest: 'b' }));
  assert.equal(file.type === 'install' && file.restart, true);
  const certificate = hostStep(running, view({ target: target(2), digest: 'b' }));
  assert.equal(certificate.type === 'install' && certificate.restart, false);
});

test('installs changed files itself only at start or if no API server has responded for 15 s', () => {
  const changed = { digest: 'b', restartDigest: 'b', changed: ['f'] };
  assert.equal(typeOf(hostStep(running, view(changed))), 'none');
  assert.equal(typeOf(hostStep(running, view({ ...changed, apiAwayMs: 14_999 }))), 'none');
  assert.equal(typeOf(hostStep(running, view({ ...changed, apiAwayMs: 15_000 }))), 'install 2');
  assert.equal(typeOf(hostStep(running, view({ ...changed, isStarting: true }))), 'install 2');
});

test('marks a healthy revision on trial as good', () => {
  assert.equal(typeOf(hostStep(onTrial, view({ digest: 'b', restartDigest: 'b' }))), 'succeed');
  assert.equal(succeeded(onTrial, 5).trial, undefined);
  assert.equal(succeeded(onTrial, 5).revisions[1]?.outcome, 'good');
});

test('replaces a revision that crashes or is unhealthy after 40 s with the last good revision', () => {
  const starting = { state: 'starting', message: 'refused' } as const;
  assert.equal(typeOf(hostStep(onTrial, view({ trialForMs: 39_999, health: starting }))), 'none');
  assert.deepEqual(hostStep(onTrial, view({ trialForMs: 40_000, health: starting })), {
    type: 'fallBack',
    to: 1,
    message: 'refused',
  });
  const crashing = { state: 'crashing', message: 'ended' } as const;
  assert.equal(typeOf(hostStep(onTrial, view({ health: crashing }))), 'fallBack');
});

test('keeps a failing revision if no good revision exists', () => {
  const only: HostState = { current: 1, revisions: [revision(1, 'trial')], trial: { sinceMs: T0 } };
  const crashing = { state: 'crashing', message: 'ended' } as const;
  assert.equal(typeOf(hostStep(only, view({ health: crashing }))), 'none');
});

test('allows a slow host three times the duration of its slowest good revision, at most 5 min', () => {
  const starting = { state: 'starting', message: 'refused' } as const;
  const slow = (tookMs: number): HostState => ({
    ...onTrial,
    revisions: [{ ...revision(1), tookMs }, revision(2, 'trial', 'b')],
  });
  const at = (tookMs: number, ms: number): string =>
    typeOf(hostStep(slow(tookMs), view({ trialForMs: ms, health: starting })));
  assert.equal(at(1_000, 40_000), 'fallBack');
  assert.equal(at(30_000, 89_999), 'none');
  assert.equal(at(30_000, 90_000), 'fallBack');
  assert.equal(at(1_000_000, 300_000), 'fallBack');
});

test('replaces a first revision that was never healthy when its files are changed', () => {
  const only: HostState = { current: 1, revisions: [revision(1, 'trial')], trial: { sinceMs: T0 } };
  const down = { digest: 'b', restartDigest: 'b', changed: ['f'], health: { state: 'crashing', message: '' } } as const;
  assert.equal(typeOf(hostStep(only, view(down))), 'none');
  assert.equal(typeOf(hostStep(only, view({ ...down, apiAwayMs: 15_000 }))), 'install 2');
  assert.equal(typeOf(hostStep(only, view({ ...down, isStarting: true }))), 'install 2');
});

test('a host does not install the files of a failed revision again, but installs changed files', () => {
  assert.equal(failed.current, 1);
  assert.equal(failed.failure?.count, 1);
  const bad = { digest: 'b', restartDigest: 'b', apiAwayMs: 60_000 };
  assert.equal(typeOf(hostStep(failed, view(bad))), 'none');
  assert.equal(typeOf(hostStep(failed, view({ ...bad, isStarting: true }))), 'none');
  assert.equal(
    typeOf(hostStep(failed, view({ ...bad, digest: 'c', restartDigest: 'c', changed: ['f'] }))),
    'install 3',
  );
});

test('a host retries a failed revision only after the leader has recorded the failure', () => {
  const bad = { digest: 'b', restartDigest: 'b' };
  assert.equal(typeOf(hostStep(failed, view({ ...bad, target: target(2) }))), 'none');
  assert.equal(typeOf(hostStep(failed, view({ ...bad, target: target(2, { knownFailures: 1 }) }))), 'install 2');
  assert.equal(typeOf(hostStep(failed, view({ ...bad, target: target(3) }))), 'install 3');
});

test('replaces a revision on trial with a newer target revision', () => {
  assert.equal(typeOf(hostStep(onTrial, view({ target: target(3) }))), 'install 3');
});

test('ignores a target revision older than the running one', () => {
  const newer: HostState = { current: 5, revisions: [revision(5)] };
  assert.equal(typeOf(hostStep(newer, view({ target: target(4) }))), 'none');
});

test('counts failures of a revision and resets the count after a newer revision is healthy', () => {
  const again = installed(failed, revision(2, 'trial', 'b'), true);
  const twice = withFallback(again, 1, 'down', T0 + 1);
  assert.equal(twice.failure?.count, 2);
  assert.equal(installed(twice, revision(3), false).failure, undefined);
});

test('never prunes the current, the newest and the last good revision', () => {
  const revisions = Array.from({ length: 12 }, (_, index) => revision(index + 1, index < 10 ? 'failed' : 'good'));
  const state: HostState = { current: 12, revisions: [revision(0), ...revisions] };
  assert.deepEqual(prunedHere(state, { failed: 2, succeeded: 1 }), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(prunedHere(state, { failed: -1, succeeded: -1 }), []);
});

test('finds files that a configuration refers to by relative or absolute path in the given sections', () => {
  const document = { a: { f: ['x.crt', './y.key'] }, b: '/etc/m/z.yaml', c: { deep: { deeper: 'w.yaml' } } };
  const names = new Set(['x.crt', 'y.key', 'z.yaml', 'w.yaml', 'other']);
  assert.deepEqual(referredFiles(document, '/etc/m', names), ['w.yaml', 'x.crt', 'y.key', 'z.yaml']);
  assert.deepEqual(referredFiles(document, '/etc/m', names, new Set(['b'])), ['z.yaml']);
});
