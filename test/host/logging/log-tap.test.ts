import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import { createLogTap } from '../../../src/host/logging/log-tap.ts';

test('log lines of the host process are copied with time and severity, up to a limit', () => {
  const written: string[] = [];
  const tap = createLogTap(() => 0);
  const sink = tap.sink({ write: (line) => void written.push(line) });
  const log = createLog({ component: 'hyperedge', level: 2, sink, nowMs: () => Date.UTC(2026, 0, 2) });
  log.error('disk failed', { disk: 'sda' });
  log.info('started');
  const { records, dropped } = tap.take();
  assert.deepEqual(
    records.map(({ time, severity, component }) => [time, severity, component]),
    [
      ['2026-01-02T00:00:00.000Z', 'error', 'host'],
      ['2026-01-02T00:00:00.000Z', 'info', 'host'],
    ],
  );
  assert.deepEqual(
    records.map(({ text }) => text),
    written,
  );
  assert.equal(dropped, 0);
  for (let index = 0; index < 5_000; index += 1) log.info('busy');
  const busy = tap.take();
  assert.equal(busy.records.length + busy.dropped, 5_000);
  assert.ok(busy.dropped > 0);
  assert.equal(written.length, 5_002, 'the log itself is complete');
  assert.deepEqual(tap.take(), { records: [], dropped: 0 });
});
