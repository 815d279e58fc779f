/** Simulates host, guard and disk of an update step by step, with power failures between any two steps. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  parseSwitchRecord,
  type SwitchRecord,
  snapshotAfterRollback,
} from '../../../../src/openshift/updates/core/port.ts';
import { nextGuardStep, nextSwitchStep } from '../../../../src/openshift/updates/core/switch.ts';
import { generator } from '../../../support/random.ts';

const WANTED = { id: '7', version: '0.2.0' };
const TIMEOUT_MS = 60_000;
const GUARD_POLL_MS = 500;

interface Disk {
  link: string | undefined;
  record: SwitchRecord | undefined;
  files: Set<string>;
  /** Target of the guard's link. */
  guard: string | undefined;
  /** Number of starts of the guard. */
  starts: number;
}

interface Play {
  /** `unhealthy`: the new executable never becomes healthy. `crashes`: it does not even run its agent. */
  readonly broken: 'no' | 'unhealthy' | 'crashes';
  /** Step numbers at which the power fails. */
  readonly cuts: readonly number[];
}

/** Power failure, which loses all state in memory. */
class Cut extends Error {}

function play({ broken, cuts }: Play): { disk: Disk; running: string; boots: number } {
  const disk: Disk = { link: undefined, record: undefined, files: new Set(['plain']), guard: undefined, starts: 0 };
  let steps = 0;
  let boots = 0;
  /** Changes the disk atomically: a power failure occurs before or after it. */
  const change = (act: () => void): void => {
    if (cuts.includes(steps++)) throw new Cut();
    act();
    if (cuts.includes(steps++)) throw new Cut();
  };
  const started = (): string => {
    const { link } = disk;
    assert.ok(link === undefined || disk.files.has(link), `link names ${link}, which is not there`);
    return link ?? '0.1.0';
  };
  let running = started();
  for (;;) {
    boots++;
    assert.ok(boots < 60, 'comes to an end');
    running = started();
    let guard: { elapsedMs: number; starts: number; restarted: boolean } | undefined;
    const startGuard = (): void => {
      if (disk.guard === undefined || disk.record === undefined || guard !== undefined) return;
      change(() => {
        disk.starts += 1;
      });
      guard = { elapsedMs: 0, starts: disk.starts, restarted: false };
    };
    const host = (): boolean => {
      if (running === '0.2.0' && broken === 'crashes') return false;
      const step = nextSwitchStep({ record: disk.record, link: disk.link, running }, WANTED);
      switch (step.step) {
        case 'none':
          return false;
        case 'stage':
          change(() => void disk.files.add('0.2.0'));
          change(() => void disk.files.add(running));
          change(() => {
            disk.guard = running;
          });
          change(() => {
            const { id, version: to } = WANTED;
            disk.record = { id, from: running, to, phase: 'trying', message: '', timeoutMs: TIMEOUT_MS };
          });
          return true;
        case 'write':
          change(() => {
            disk.record = step.record;
          });
          return true;
        case 'link':
          change(() => {
            disk.link = step.version;
          });
          return true;
        case 'restart':
          startGuard();
          running = started();
          return true;
        case 'confirm':
          if (broken !== 'no') return false;
          change(() => {
            disk.record = step.record;
          });
          return true;
      }
    };
    const watch = (): boolean => {
      if (guard === undefined) return false;
      const step = nextGuardStep(disk.record, disk.link, guard);
      switch (step.step) {
        case 'end':
          guard = undefined;
          return false;
        case 'wait':
          guard.elapsedMs += GUARD_POLL_MS;
          return guard.elapsedMs < 3 * TIMEOUT_MS;
        case 'write':
          change(() => {
            disk.record = step.record;
          });
          return true;
        case 'link':
          change(() => {
            disk.link = step.version;
          });
          return true;
        case 'restart':
          guard.restarted = true;
          running = started();
          return true;
      }
    };
    try {
      startGuard();
      for (let active = true; active; ) {
        const hosts = host();
        const guards = watch();
        active = hosts || guards;
      }
      return { disk, running, boots };
    } catch (error) {
      if (!(error instanceof Cut)) throw error;
    }
  }
}

test('an update ends with the new executable, or with the old one if the new executable is broken', () => {
  const good = play({ broken: 'no', cuts: [] });
  assert.equal(good.running, '0.2.0');
  assert.equal(good.disk.record?.phase, 'done');
  for (const broken of ['unhealthy', 'crashes'] as const) {
    const bad = play({ broken, cuts: [] });
    assert.equal(bad.running, '0.1.0', broken);
    assert.equal(bad.disk.link, '0.1.0');
    assert.equal(bad.disk.record?.phase, 'failed');
    assert.match(bad.disk.record?.message ?? '', /0\.2\.0 was not healthy within 60 s/);
  }
});

test('after a power failure at any step, an update ends with an executable that works', () => {
  for (const broken of ['no', 'unhealthy', 'crashes'] as const)
    for (let cut = 0; cut < 40; cut++) check({ broken, cuts: [cut] });
});

test('ends with an executable that works in 2,000 updates with several power failures each', () => {
  const random = generator(1616);
  for (let round = 0; round < 2_000; round++) {
    const broken = (['no', 'unhealthy', 'crashes'] as const)[Math.floor(random() * 3)] ?? 'no';
    const cuts = Array.from({ length: 1 + Math.floor(random() * 6) }, () => Math.floor(random() * 40));
    check({ broken, cuts });
  }
});

function check(given: Play): void {
  const { disk, running } = play(given);
  const what = JSON.stringify(given);
  assert.equal(running, disk.link, what);
  // A healthy executable may be reverted after too many boots; a broken one never stays.
  if (given.broken !== 'no') assert.equal(running, '0.1.0', what);
  else if (given.cuts.length === 1) assert.equal(running, '0.2.0', what);
  assert.equal(disk.record?.phase, running === '0.2.0' ? 'done' : 'failed', what);
}

test('an update fails if an executable was installed manually in the meantime', () => {
  const record = {
    ...WANTED,
    from: '0.1.0',
    to: '0.2.0',
    phase: 'trying',
    message: '',
    timeoutMs: 1,
  } as const;
  const step = nextSwitchStep({ record, link: undefined, running: '0.1.5' }, WANTED);
  assert.equal(step.step === 'write' && step.record.phase, 'failed');
});

test('completes an update to the running version at once, and does not repeat a completed update', () => {
  const first = nextSwitchStep({ record: undefined, link: undefined, running: '0.2.0' }, WANTED);
  assert.ok(first.step === 'write' && first.record.phase === 'done');
  assert.deepEqual(nextSwitchStep({ record: first.record, link: undefined, running: '0.2.0' }, WANTED), {
    step: 'none',
  });
  assert.deepEqual(nextSwitchStep({ record: undefined, link: undefined, running: '0.1.0' }, undefined), {
    step: 'none',
  });
});

test('keeps the store snapshot when a return to the old release is requested before a rolled-back store has started', () => {
  const record: SwitchRecord = {
    id: '7',
    from: '0.1.0',
    to: '0.2.0',
    phase: 'failed',
    message: 'x',
    timeoutMs: 1,
    snapshot: 'store-0.1.0.db',
  };
  const back = { id: '7-back', version: '0.1.0' };
  const step = nextSwitchStep({ record, link: '0.1.0', running: '0.1.0' }, back);
  assert.ok(step.step === 'write');
  assert.equal(step.record.phase, 'done');
  assert.equal(snapshotAfterRollback(step.record, '0.1.0'), 'store-0.1.0.db');
  assert.equal(
    snapshotAfterRollback(parseSwitchRecord(JSON.stringify(step.record), 'record.json'), '0.1.0'),
    'store-0.1.0.db',
  );
  const again = nextSwitchStep({ record: step.record, link: '0.1.0', running: '0.1.0' }, { ...back, id: '8' });
  assert.ok(again.step === 'write');
  assert.equal(again.record.snapshot, 'store-0.1.0.db');
});

test('restores no store snapshot after a successful update, during a trial, or for another release', () => {
  const record = (change: Partial<SwitchRecord>): SwitchRecord => ({
    id: '7',
    from: '0.1.0',
    to: '0.2.0',
    phase: 'done',
    message: '',
    timeoutMs: 1,
    snapshot: 'store-0.1.0.db',
    ...change,
  });
  assert.equal(snapshotAfterRollback(undefined, '0.1.0'), undefined);
  assert.equal(snapshotAfterRollback(record({}), '0.1.0'), undefined);
  assert.equal(snapshotAfterRollback(record({}), '0.2.0'), undefined);
  assert.equal(snapshotAfterRollback(record({ phase: 'trying' }), '0.1.0'), undefined);
  assert.equal(snapshotAfterRollback(record({ phase: 'failed' }), '0.2.0'), undefined);
  assert.equal(snapshotAfterRollback(record({ phase: 'rollingBack' }), '0.1.0'), 'store-0.1.0.db');
});

test('a damaged record of an update is an error that names the file and the remedy', () => {
  for (const text of [
    '',
    '{',
    'null',
    '[]',
    '{"id":"1"}',
    '{"id":1,"from":"a","to":"b","phase":"done","message":"","timeoutMs":1}',
  ])
    assert.throws(
      () => parseSwitchRecord(text, '/var/record.json'),
      {
        code: 'damaged',
        message: /^\/var\/record\.json: .* is damaged; run the install command .* mv \/var\/record\.json/,
      },
      text,
    );
  assert.equal(parseSwitchRecord(undefined, '/var/record.json'), undefined);
});
