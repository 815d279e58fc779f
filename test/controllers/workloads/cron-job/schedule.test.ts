import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lastTime, parseSchedule, splitZone } from '../../../../src/controllers/workloads/cron-job/schedule.ts';
import { seeded } from '../../objects.ts';

const at = (text: string): number => Date.parse(text);
function times(schedule: string, zone: string, from: string, count: number): string[] {
  const parsed = parseSchedule(schedule, zone);
  const found: string[] = [];
  for (let ms = parsed.next(at(from)); ms !== undefined && found.length < count; ms = parsed.next(ms)) {
    found.push(new Date(ms).toISOString().slice(0, 16));
  }
  return found;
}

test('parses fields, names, ranges, steps and descriptors of cron schedules', () => {
  const from = '2026-01-01T00:00:00Z';
  assert.deepEqual(times('*/20 * * * *', 'UTC', from, 3), ['2026-01-01T00:20', '2026-01-01T00:40', '2026-01-01T01:00']);
  assert.deepEqual(times('5 4 * * sun', 'UTC', from, 2), ['2026-01-04T04:05', '2026-01-11T04:05']);
  assert.deepEqual(times('0 22 * * 1-5', 'UTC', from, 3), ['2026-01-01T22:00', '2026-01-02T22:00', '2026-01-05T22:00']);
  assert.deepEqual(times('0 0 29 feb *', 'UTC', from, 1), ['2028-02-29T00:00']);
  assert.deepEqual(times('0 0 30 2 *', 'UTC', from, 1), []);
  assert.deepEqual(times('@monthly', 'UTC', from, 2), ['2026-02-01T00:00', '2026-03-01T00:00']);
  assert.deepEqual(times('@every 90s', 'UTC', from, 2), ['2026-01-01T00:01', '2026-01-01T00:03']);
  assert.deepEqual(times('10-40/15 0 * * *', 'UTC', from, 3), [
    '2026-01-01T00:10',
    '2026-01-01T00:25',
    '2026-01-01T00:40',
  ]);
});

test('matches day and weekday together if one of the fields is *, and otherwise either field', () => {
  const from = '2026-01-01T00:00:00Z';
  assert.deepEqual(times('0 0 13 * 5', 'UTC', from, 3), ['2026-01-02T00:00', '2026-01-09T00:00', '2026-01-13T00:00']);
  assert.deepEqual(times('0 0 13 * ?', 'UTC', from, 1), ['2026-01-13T00:00']);
});

test('skips a time in the missing hour of daylight saving, and repeats a time in the repeated hour', () => {
  const berlin = (schedule: string, from: string, count: number) => times(schedule, 'Europe/Berlin', from, count);
  assert.deepEqual(berlin('0 9 * * *', '2026-03-28T00:00:00Z', 3), [
    '2026-03-28T08:00',
    '2026-03-29T07:00',
    '2026-03-30T07:00',
  ]);
  assert.deepEqual(berlin('30 2 * * *', '2026-03-28T00:00:00Z', 2), ['2026-03-28T01:30', '2026-03-30T00:30']);
  assert.deepEqual(berlin('30 2 25 10 *', '2026-10-24T12:00:00Z', 2), ['2026-10-25T00:30', '2026-10-25T01:30']);
  assert.throws(() => parseSchedule('* * * * *', 'Nowhere/Land'), RangeError);
  assert.throws(() => parseSchedule('* * * *', 'UTC'), /expected exactly 5 fields/);
  assert.deepEqual(splitZone('CRON_TZ=Asia/Tokyo 0 0 * * *'), { zone: 'Asia/Tokyo', schedule: '0 0 * * *' });
});

/** Oracle: visits every minute and compares its wall clock, according to the platform. */
test('finds the same times as a search over every minute for random schedules, including daylight saving', () => {
  const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu'];
  const starts = ['2026-03-07T00:00:00Z', '2026-03-28T00:00:00Z', '2026-10-03T00:00:00Z', '2026-10-24T00:00:00Z'];
  for (let seed = 1; seed <= 60; seed++) {
    const random = seeded(seed);
    const pick = (count: number): number => Math.floor(random() * count);
    const one = (min: number, max: number): string =>
      random() < 0.4 ? '*' : random() < 0.5 ? `*/${2 + pick(6)}` : String(min + pick(max - min + 1));
    const text = `${one(0, 59)} ${one(0, 23)} ${one(1, 31)} * ${one(0, 6)}`;
    const zone = zones[pick(zones.length)] ?? 'UTC';
    const from = at(starts[pick(starts.length)] ?? '');
    const until = from + 60 * 3_600_000;
    const [minute = '', hour = '', day = '', , weekday = ''] = text.split(' ');
    const matches = (field: string, value: number, min: number): boolean =>
      field === '*' ||
      (field.startsWith('*/') ? (value - min) % Number(field.slice(2)) === 0 : Number(field) === value);
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      weekday: 'short',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
    });
    const walked: number[] = [];
    for (let ms = from + 60_000; ms <= until; ms += 60_000) {
      const wall: Record<string, string> = {};
      for (const { type, value } of format.formatToParts(ms)) wall[type] = value;
      const inMonth = matches(day, Number(wall['day']), 1);
      const weekdays = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
      const inWeek = matches(weekday, weekdays.indexOf(wall['weekday'] ?? ''), 0);
      const isDay = day === '*' || weekday === '*' ? inMonth && inWeek : inMonth || inWeek;
      if (isDay && matches(hour, Number(wall['hour']), 0) && matches(minute, Number(wall['minute']), 0))
        walked.push(ms);
    }
    const schedule = parseSchedule(text, zone);
    const found: number[] = [];
    for (let ms = schedule.next(from); ms !== undefined && ms <= until; ms = schedule.next(ms)) found.push(ms);
    assert.deepEqual(found, walked, `seed ${seed}: ${text} in ${zone} from ${new Date(from).toISOString()}`);
    assert.equal(lastTime(schedule, from, until)?.atMs, walked.at(-1), `seed ${seed}: the last of ${text} in ${zone}`);
  }
});

test('finds the last missed time after years, and preserves the interval of @every', () => {
  const schedule = parseSchedule('*/5 3 * * *', 'Europe/Berlin');
  const found = lastTime(schedule, at('2016-01-01T00:00:00Z'), at('2026-01-01T12:00:00Z'));
  assert.equal(new Date(found?.atMs ?? 0).toISOString(), '2026-01-01T02:55:00.000Z');
  assert.ok((found?.count ?? 0) > 100);
  const every = lastTime(parseSchedule('@every 7m', 'UTC'), at('2026-01-01T00:00:10Z'), at('2026-01-01T01:00:00Z'));
  assert.equal(new Date(every?.atMs ?? 0).toISOString(), '2026-01-01T00:56:10.000Z');
});

test('finds the last time of a schedule with long gaps in few steps', () => {
  const schedule = parseSchedule('* * * 1-6 *', 'UTC');
  let steps = 0;
  const counted = {
    next: (ms: number) => {
      steps++;
      return schedule.next(ms);
    },
  };
  const found = lastTime(counted, at('2021-01-01T00:00:00Z'), at('2025-12-31T23:00:00Z'));
  assert.equal(found?.atMs, at('2025-06-30T23:59:00Z'));
  assert.ok(steps < 200, `${steps} steps`);
});

test('rejects within a short time schedules that never match and schedules that are too long', () => {
  const from = Date.UTC(2026, 0, 1);
  const started = performance.now();
  for (let index = 0; index < 200; index++) {
    const schedule = parseSchedule(index % 2 === 0 ? '0 0 31 2,4 *' : '0 0 30 2 ?', 'America/New_York');
    assert.equal(schedule.next(from + index * 60_000), undefined);
  }
  // A search through five years takes 50 ms for each.
  assert.ok(performance.now() - started < 1000, `${performance.now() - started} ms`);
  assert.ok(parseSchedule('0 0 31 2,5 *', 'America/New_York').next(from) !== undefined);
  assert.ok(parseSchedule('0 0 30 2 1', 'America/New_York').next(from) !== undefined, 'Mondays in February');
  assert.throws(() => parseSchedule(`${'1,'.repeat(50_000)}1 * * * *`, 'UTC'), /at most 4096 characters/);
});
