import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linesOf, readFlushTimes } from '../../../../src/console/data/hosts/flush-times.ts';
import { type History, summaryOf } from '../../../../src/console/data/hosts/history.ts';
import { FakeApi, json } from '../fake-api.ts';

const { signal } = new AbortController();
const history = (times: number[], average: (number | null)[]): History => ({
  times,
  metrics: new Map([['storeLatency', { unit: 'seconds', average, max: average }]]),
});

test('draws flush times of nodes as lines of one plot, also with shifted times and without samples', () => {
  const lines = linesOf(
    new Map<string, History | undefined>([
      ['m1', history([100, 130, 160], [0.001, null, 0.003])],
      ['m2', history([131, 161, 191], [0.02, 0.03, 1.5])],
      ['m3', undefined],
    ]),
    'storeLatency',
  );
  assert.deepEqual(lines?.times, [100, 130, 160, 190]);
  assert.deepEqual(
    [...(lines?.metrics ?? [])].map(([node, { average }]) => [node, average]),
    [
      ['m1', [0.001, null, 0.003, null]],
      ['m2', [null, 0.02, 0.03, 1.5]],
      ['m3', [null, null, null, null]],
    ],
  );
  const second = lines?.metrics.get('m2');
  assert.ok(second);
  assert.equal(summaryOf('m2', second), 'm2: average 516.67 ms, highest 1.5 s, latest 1.5 s');
  assert.equal(linesOf(new Map([['m1', undefined]]), 'storeLatency'), undefined);
});

test('flush times are read from the nodes that answer', async () => {
  const server = new FakeApi();
  const series = [{ metrics: { storeLatency: { unit: 'seconds', average: [0.001], max: [0.002] } } }];
  server.answer = (url) =>
    url.pathname.includes('/m1/')
      ? json({ from: '2026-01-01T00:00:00Z', stepSeconds: 30, series })
      : json({ kind: 'Status', reason: 'Forbidden', message: 'you may not', code: 403 }, 403);
  const lines = await readFlushTimes(server.api, ['m1', 'm2'], '1h', signal);
  assert.deepEqual([...(lines?.metrics.keys() ?? [])], ['m1', 'm2']);
  assert.deepEqual(lines?.metrics.get('m1')?.max, [0.002]);
  await assert.rejects(readFlushTimes(server.api, ['m2', 'm3'], '1h', signal), /you may not/);
});
