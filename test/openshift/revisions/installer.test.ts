/** The installer of a host without an API server works with the data on its disk. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import type { Clock } from '../../../src/base/time/clock.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import type { NodeReport } from '../../../src/openshift/revisions/core/index.ts';
import { RevisionInstaller, type Target } from '../../../src/openshift/revisions/installer.ts';
import type { OperandHealth } from '../../../src/openshift/revisions/port.ts';
import { createTurn } from '../../../src/openshift/revisions/turn.ts';
import { MemoryHost } from './memory-host.ts';

const settled = async (what: string, until: () => boolean): Promise<void> => {
  for (let round = 0; round < 400; round++) {
    if (until()) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  assert.fail(what);
};

interface Made {
  readonly installer: RevisionInstaller;
  readonly reports: NodeReport[];
  target: Target | undefined;
  awayMs: number;
}

function make(host: MemoryHost, clock: Clock = systemClock): Made {
  const reports: NodeReport[] = [];
  const made: Made = {
    reports,
    target: undefined,
    awayMs: 0,
    installer: new RevisionInstaller({
      operand: 'kube-apiserver',
      files: host,
      process: host,
      target: () => made.target,
      apiAwayMs: () => made.awayMs,
      turn: createTurn(() => {}),
      reported: (report) => reports.push(report),
      clock,
      log: silentLog,
    }),
  };
  return made;
}

const wanted = (revision: number, overlay = ''): Target => ({
  revision,
  overlay,
  reason: 'test',
  knownFailures: 0,
  keepFailed: 5,
  keepSucceeded: 5,
});

test('saves the files as revision 1 at the first start, and starts the component with them', async () => {
  const host = new MemoryHost('one');
  const { installer } = make(host);
  await installer.prepare(false);
  host.boot();
  assert.deepEqual(host.starts, ['one']);
  assert.equal(host.state.current, 1);
  assert.equal(host.directories.size, 1);
});

test('rolls back an invalid file that an administrator installed while no API server was available', async () => {
  const host = new MemoryHost('one');
  const { installer, reports } = make(host);
  await installer.prepare(false);
  host.boot();
  host.config = 'bad';
  await installer.adoptNow();
  assert.equal(host.state.trial !== undefined, true);
  host.boot();
  await settled('fallback', () => host.running.config === 'one');
  await installer.stop();
  assert.deepEqual(host.starts, ['one', 'bad', 'one']);
  assert.equal(host.config, 'bad', 'the edited file is kept');
  assert.equal(host.state.failure?.revision, 2);
  assert.match(host.state.failure?.errors.join() ?? '', /api ended 2 times; bad/);
  assert.equal(reports.at(-1)?.current, 1);
});

test('at a boot, starts the last good files if the current files have failed before', async () => {
  const host = new MemoryHost('one');
  const first = make(host);
  await first.installer.prepare(false);
  host.boot();
  host.config = 'bad';
  await first.installer.adoptNow();
  host.boot();
  await settled('fallback', () => host.running.config === 'one');
  await first.installer.stop();
  // Power failure: a partial copy is completed.
  host.active = { ...host.active, config: 'half' };
  const second = make(host);
  await second.installer.prepare(false);
  host.boot();
  assert.equal(host.running.config, 'one');
  host.config = 'two';
  const third = make(host);
  await third.installer.prepare(false);
  host.boot();
  assert.equal(host.running.config, 'two');
  assert.equal(host.state.current, 3);
});

test('copies the files at the next start if a power failure occurred after the state was written', async () => {
  const host = new MemoryHost('one');
  const { installer } = make(host);
  await installer.prepare(false);
  host.config = 'two';
  host.apply = async () => {
    throw new Error('power cut');
  };
  await installer.adoptNow();
  assert.equal(host.active.config, 'one');
  await installer.stop();
  const { apply } = new MemoryHost('');
  host.apply = apply.bind(host);
  const again = Object.assign(new MemoryHost('two'), { state: host.state, active: host.active });
  for (const [revision, each] of host.directories) again.directories.set(revision, each);
  const restarted = make(again);
  await restarted.installer.prepare(false);
  again.boot();
  assert.equal(again.running.config, 'two');
  restarted.installer.start();
  await settled('good', () => again.state.trial === undefined);
  await restarted.installer.stop();
});

test('applies renewed certificates without a restart, and includes them in the next revision', async () => {
  const host = new MemoryHost('one');
  const made = make(host);
  await made.installer.prepare(false);
  host.boot();
  host.certificate = 'renewed';
  made.installer.start();
  await settled('followed', () => host.active.certificate === 'renewed');
  await settled('reported', () => made.reports.at(-1)?.changed.join() === 'master/server.crt');
  made.target = wanted(2);
  made.installer.kick();
  await settled('installed', () => host.state.current === 2);
  await made.installer.stop();
  assert.deepEqual(host.starts, ['one']);
});

test('installs changed files while no API server responds', async () => {
  const host = new MemoryHost('one');
  const made = make(host);
  await made.installer.prepare(false);
  host.boot();
  made.installer.start();
  host.config = 'two';
  made.installer.kick();
  await settled('seen', () => (made.reports.at(-1)?.changed.length ?? 0) > 0);
  assert.equal(host.state.current, 1);
  made.awayMs = 20_000;
  made.installer.kick();
  await settled('installed', () => host.running.config === 'two');
  await made.installer.stop();
});

test('the trial of a revision has the same duration when the clock is set forward or back', async () => {
  const day = 24 * 3_600_000;
  for (const jumpMs of [day, -day]) {
    let offsetMs = 0;
    const clock: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + offsetMs };
    const host = new MemoryHost('one');
    const { installer } = make(host, clock);
    await installer.prepare(false);
    host.boot();
    host.config = 'two';
    let state: OperandHealth['state'] = 'starting';
    host.health = async () => ({ state, message: 'not ready yet' });
    await installer.adoptNow();
    host.boot();
    offsetMs = jumpMs;
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    assert.deepEqual([host.running.config, host.state.failure], ['two', undefined]);
    state = 'healthy';
    await settled('good', () => host.state.trial === undefined);
    await installer.stop();
    const { outcome, tookMs = -1 } = host.state.revisions.find(({ revision }) => revision === 2) ?? {};
    assert.equal(outcome, 'good');
    assert.ok(tookMs > 1_000 && tookMs < 30_000, `${tookMs} ms`);
  }
});
