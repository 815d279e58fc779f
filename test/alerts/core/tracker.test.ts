import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readingsOf } from '../../../src/alerts/core/exposition.ts';
import { SampleStore } from '../../../src/alerts/core/samples.ts';
import { AlertTracker, compiledRules, compileRule } from '../../../src/alerts/core/tracker.ts';
import { generator } from '../../support/random.ts';

const rule = (expr: string, wait?: string) =>
  compileRule({
    alert: 'Test',
    expr,
    ...(wait === undefined ? {} : { for: wait }),
    labels: { severity: 'critical' },
    annotations: { summary: '{{ $labels.x }} is {{ $value }}', action: 'Repair it.' },
  });

/** States after each scrape of a metric `a`; undefined is a failed scrape. */
function statesOf(wait: string | undefined, values: readonly (number | undefined)[], stepMs: number): string[] {
  const rules = [rule('a > 0', wait)];
  const samples = new SampleStore(
    rules.map(({ expression }) => expression),
    10,
  );
  const tracker = new AlertTracker(rules);
  return values.map((value, index) => {
    const now = index * stepMs;
    samples.record('t', now, value === undefined ? [] : [{ metric: 'a', labels: new Map([['x', '1']]), value }]);
    tracker.update(samples, now, now);
    return tracker.alerts(now, now)[0]?.state ?? '';
  });
}

describe('states of alerts', () => {
  it('an alert is pending for the duration of `for`, and inactive after the first false evaluation', () => {
    assert.deepEqual(statesOf('1m', [0, 1, 1, 1, 1, 0, 1], 30_000), [
      '',
      'pending',
      'pending',
      'firing',
      'firing',
      '',
      'pending',
    ]);
    assert.deepEqual(statesOf(undefined, [1, undefined], 30_000), ['firing', '']);
  });

  it('an alert fires exactly if its expression was true at all evaluations of the duration', () => {
    const random = generator(2);
    for (let run = 0; run < 200; run += 1) {
      const values = Array.from({ length: 40 }, () => (random() < 0.8 ? 1 : random() < 0.5 ? 0 : undefined));
      const states = statesOf('2m', values, 30_000);
      for (const [index, state] of states.entries()) {
        const window = values.slice(Math.max(0, index - 4), index + 1);
        const fires = index >= 4 && window.every((value) => value === 1);
        assert.equal(state === 'firing', fires, `run ${run}, evaluation ${index}: ${values.join(' ')}`);
      }
    }
  });

  it('each change of the state of an alert is reported once, with summary, fix and time', () => {
    const rules = [rule('a > 0', '1m')];
    const samples = new SampleStore(
      rules.map(({ expression }) => expression),
      10,
    );
    const tracker = new AlertTracker(rules);
    const step = (now: number, value: number) => {
      samples.record('t', now, [{ metric: 'a', labels: new Map([['x', 'disk']]), value }]);
      return tracker.update(samples, now, 1_000_000 + now).transitions;
    };
    assert.deepEqual(step(0, 5), []);
    const [fired, ...more] = step(60_000, 6);
    assert.deepEqual(more, []);
    assert.equal(fired?.to, 'firing');
    assert.deepEqual(fired?.alert, {
      name: 'Test',
      state: 'firing',
      severity: 'critical',
      sinceMs: 1_000_000,
      summary: 'disk is 6',
      fix: 'Repair it.',
      labels: { x: 'disk' },
      value: 6,
    });
    assert.deepEqual(step(90_000, 6), []);
    assert.deepEqual(
      step(120_000, 0).map(({ to }) => to),
      ['resolved'],
    );
  });

  it('the state of an alert does not change while its rule cannot be evaluated', () => {
    const rules = [rule('a > on (x) b', '1m')];
    const samples = new SampleStore(
      rules.map(({ expression }) => expression),
      10,
    );
    const tracker = new AlertTracker(rules);
    const step = (now: number, value: number, instances: readonly string[]) => {
      const right = instances.map((i) => ({ metric: 'b', labels: new Map([...x, ['i', i]]), value: 0 }));
      samples.record('t', now, [{ metric: 'a', labels: x, value }, ...right]);
      const { transitions, problems } = tracker.update(samples, now, now);
      return [tracker.alerts(now, now)[0]?.state, transitions.map(({ to }) => to).join(), problems.size];
    };
    const x = new Map([['x', '1']]);
    assert.deepEqual(step(0, 1, ['1']), ['pending', '', 0]);
    // Two series on the right side match the series on the left side, which is an error.
    assert.deepEqual(step(30_000, 1, ['1', '2']), ['pending', '', 1]);
    assert.deepEqual(step(60_000, 1, ['1']), ['firing', 'firing', 0]);
    assert.deepEqual(step(90_000, 1, ['1', '2']), ['firing', '', 1]);
    assert.deepEqual(step(120_000, 1, ['1']), ['firing', '', 0]);
    assert.deepEqual(step(150_000, 0, ['1']), [undefined, 'resolved', 0]);
  });

  it('the number of tracked alerts is bounded', () => {
    const rules = [rule('a > 0')];
    const samples = new SampleStore(
      rules.map(({ expression }) => expression),
      1000,
    );
    const tracker = new AlertTracker(rules);
    const many = Array.from({ length: 500 }, (_, x) => ({ metric: 'a', labels: new Map([['x', `${x}`]]), value: 1 }));
    samples.record('t', 0, many);
    tracker.update(samples, 0, 0);
    assert.equal(tracker.alerts(0, 0).length, 100);
  });
});

describe('shipped alert rules', () => {
  it('shipped rules can all be evaluated without an error', () => {
    const rules = compiledRules();
    assert.ok(rules.length >= 12);
    const samples = new SampleStore(
      rules.map(({ expression }) => expression),
      1000,
    );
    const { problems } = new AlertTracker(rules).update(samples, 0, 0);
    assert.deepEqual([...problems], []);
  });

  it('shipped rules fire for a store without a leader, a full disk and a slow disk', () => {
    const rules = compiledRules();
    const samples = new SampleStore(
      rules.map(({ expression }) => expression),
      1000,
    );
    const tracker = new AlertTracker(rules);
    const more = new Map([
      ['instance', 'edge-1'],
      ['job', 'hyperedge-etcd'],
    ]);
    for (let now = 0; now <= 1_200_000; now += 30_000) {
      const count = now / 1000;
      const text = `# TYPE etcd_server_has_leader gauge
etcd_server_has_leader 0
hyperedge_etcd_disk_full 1
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.1"} ${count}
etcd_disk_wal_fsync_duration_seconds_bucket{le="1.024"} ${count * 2}
etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"} ${count * 2}
`;
      samples.record(
        'etcd',
        now,
        readingsOf(text, (metric) => samples.isWanted(metric), more),
      );
      tracker.update(samples, now, now);
    }
    const firing = tracker.alerts(1_200_000, 1_200_000);
    assert.deepEqual(
      firing.map(({ name, state }) => [name, state]),
      [
        ['StoreDiskIsFull', 'firing'],
        ['StoreHasNoLeader', 'firing'],
        ['StoreDiskIsSlow', 'firing'],
      ],
    );
    assert.match(firing[1]?.summary ?? '', /The store member edge-1 has no leader/);
  });
});

describe('text format of metrics', () => {
  it('metrics text is parsed with escapes, times and special values, and malformed lines are ignored', () => {
    const text = [
      '# HELP a text',
      'a{x="1,}\\"\\\\\\n",instance="other"} 1 1234',
      'b 2',
      'a{x="inf"} +Inf',
      'a NaN',
      'a',
      'a{x="y"} no',
      'ab 5',
    ].join('\n');
    const found = [...readingsOf(text, (metric) => metric === 'a', new Map([['instance', 'own']]))];
    assert.deepEqual(
      found.map(({ labels, value }) => [Object.fromEntries(labels), value]),
      [
        [{ x: '1,}"\\\n', instance: 'own' }, 1],
        [{ x: 'inf', instance: 'own' }, Number.POSITIVE_INFINITY],
        [{ instance: 'own' }, Number.NaN],
      ],
    );
  });
});
