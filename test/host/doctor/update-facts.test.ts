import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PRODUCT_VERSION } from '../../../src/base/versions/version.ts';
import { updateOf } from '../../../src/host/doctor/cluster-facts.ts';

const UPDATED_MS = Date.parse('2026-05-01T12:00:00Z');
const MINUTE_MS = 60_000;
const VERSION = { status: {} } as NonNullable<Parameters<typeof updateOf>[1]>;
const record = {
  file: '/record.json',
  text: JSON.stringify({ id: '2', from: '0.0.9', to: PRODUCT_VERSION, phase: 'done', message: '', timeoutMs: 1 }),
  writtenMs: UPDATED_MS,
};
const apiServer = (restarts: number, startedMs: number) => ({
  name: 'kube-apiserver',
  restarts,
  startedAt: new Date(startedMs).toISOString(),
});
const former = (restarts: number, startedMs: number, nowMs: number, text: string | undefined = record.text) =>
  updateOf({ ...record, text }, VERSION, { isMaster: true, components: [apiServer(restarts, startedMs)], nowMs })
    .former;

test('suggests the former release when components restart often soon after an update', () => {
  const startedMs = UPDATED_MS + 12 * MINUTE_MS;
  const nowMs = startedMs + 2 * MINUTE_MS;
  assert.deepEqual(former(4, startedMs, nowMs), {
    version: '0.0.9',
    cause: 'kube-apiserver has restarted 4 times since the update',
  });
  assert.equal(former(2, startedMs, nowMs), undefined);
  // The restarts are older than the update.
  assert.equal(former(4, UPDATED_MS - MINUTE_MS, nowMs), undefined);
  assert.equal(former(4, startedMs, UPDATED_MS + 4 * 24 * 60 * MINUTE_MS), undefined);
  // The clock was set back.
  assert.equal(former(4, startedMs, UPDATED_MS - MINUTE_MS), undefined);
  assert.equal(former(4, startedMs, nowMs, record.text.replace('"done"', '"failed"')), undefined);
  assert.equal(
    updateOf({ ...record, text: undefined }, VERSION, { isMaster: true, components: [], nowMs }).former,
    undefined,
  );
});

test('suggests the former release while no API server responds to a master', () => {
  const host = { isMaster: true, components: [], nowMs: UPDATED_MS + 30 * 24 * 60 * MINUTE_MS };
  assert.deepEqual(updateOf(record, undefined, host).former, { version: '0.0.9', cause: 'no API server responds' });
  assert.equal(updateOf(record, undefined, { ...host, isMaster: false }).former, undefined);
});

test('reports a damaged record of an update', () => {
  const host = { isMaster: true, components: [], nowMs: UPDATED_MS };
  const { damaged, unfinished } = updateOf({ ...record, text: '{' }, VERSION, host);
  assert.match(damaged ?? '', /^\/record\.json: the record of the last update is damaged/);
  assert.equal(unfinished, undefined);
  assert.equal(updateOf({ ...record, text: undefined }, VERSION, host).damaged, undefined);
});
