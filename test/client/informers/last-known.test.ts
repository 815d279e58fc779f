import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { KubeObject } from '../../../src/api/meta/object.ts';
import { CodedError } from '../../../src/base/errors.ts';
import { createLog } from '../../../src/base/log.ts';
import { createLastKnown, type LastKnown } from '../../../src/client/index.ts';
import { ManualClock } from '../clocks.ts';

let clock: ManualClock;
let disk: Map<string, Uint8Array>;
let writes: string[];
let lines: string[];
let failure: Error | undefined;
let state: LastKnown;

const open = (): LastKnown =>
  createLastKnown({
    clock,
    log: createLog({ component: 't', level: 2, sink: { write: (line) => lines.push(line) }, nowMs: () => 0 }),
    files: {
      read: async (name) => {
        if (failure !== undefined) throw failure;
        return disk.get(name);
      },
      write: async (name, content) => {
        if (failure !== undefined) throw failure;
        if (Buffer.from(disk.get(name) ?? []).equals(Buffer.from(content)) && disk.has(name)) return false;
        writes.push(name);
        disk.set(name, content);
        return true;
      },
      remove: async (name) => {
        disk.delete(name);
      },
    },
  });
const named = (...names: string[]): KubeObject[] => names.map((name) => ({ metadata: { name } }));

beforeEach(() => {
  clock = new ManualClock();
  disk = new Map();
  writes = [];
  lines = [];
  failure = undefined;
  state = open();
});

test('distinguishes a set of last-known objects that was never written from an empty set', async () => {
  assert.equal(await state.read('pods'), undefined);
  const objects = [{ metadata: { name: 'a' }, data: { text: 'line\nbreak, ümlaut' } }];
  state.keep('pods', () => objects, 'soon');
  state.keep('services', () => [], 'soon');
  await clock.advance(1_000);
  assert.deepEqual(await open().read('pods'), objects);
  assert.deepEqual(await open().read('services'), []);
});

test('batches writes: pace "soon" after 1 s and then every 5 s, pace "calm" after 5 s and then every minute', async () => {
  let name = 'a';
  const touch = (pace: 'soon' | 'calm'): void => state.keep(pace, () => named(name), pace);
  for (const next of ['a', 'b', 'c']) {
    name = next;
    touch('soon');
    touch('calm');
  }
  await clock.advance(999);
  assert.deepEqual(writes, []);
  await clock.advance(1);
  assert.deepEqual(writes, ['soon']);
  assert.deepEqual(await state.read('soon'), named('c'));
  name = 'd';
  touch('soon');
  await clock.advance(3_999);
  assert.deepEqual(writes, ['soon']);
  await clock.advance(1_001);
  assert.deepEqual(writes, ['soon', 'calm', 'soon']);
  name = 'e';
  touch('calm');
  await clock.advance(58_000);
  assert.deepEqual(writes, ['soon', 'calm', 'soon']);
  await clock.advance(2_000);
  assert.deepEqual(writes, ['soon', 'calm', 'soon', 'calm']);
});

test('writes pending sets of last-known objects on stop and ignores later changes', async () => {
  state.keep('pods', () => named('a'), 'calm');
  await state.stop();
  assert.deepEqual(await open().read('pods'), named('a'));
  state.keep('pods', () => named(), 'soon');
  await clock.advance(60_000);
  assert.deepEqual(await open().read('pods'), named('a'));
});

test('ignores a damaged, foreign or older set of last-known objects with one log line', async () => {
  disk.set('pods', Buffer.from('{"form":99,"objects":0}\n'));
  assert.equal(await state.read('pods'), undefined);
  disk.set('pods', Buffer.from('{"form":1,"objects":2}\n{"metadata":{}}\n'));
  assert.equal(await state.read('pods'), undefined);
  failure = new CodedError('sealed-file', '/x/pods: the file is damaged or was sealed on another host');
  assert.equal(await state.read('pods'), undefined);
  assert.equal(lines.length, 3);
  for (const line of lines) assert.match(line, /last known state ignored.*set="?pods/);
});

test('a set of last-known objects that is too large is not kept, and its older state is removed', async () => {
  state.keep('services', () => named('a'), 'soon');
  await clock.advance(1_000);
  state.keep('services', () => Array.from({ length: 50_001 }, () => ({})), 'soon');
  await clock.advance(60_000);
  assert.equal(disk.has('services'), false);
  state.keep('services', () => [{ data: 'x'.repeat(33 * 1024 * 1024) }], 'soon');
  await clock.advance(60_000);
  assert.equal(disk.has('services'), false);
  assert.match(lines.join('\n'), /last known state not written.*50001 objects are more than 50000/);
});

test('logs a failing disk once and retries at the next change', async () => {
  failure = new Error('ENOSPC: no space left on device');
  for (let round = 0; round < 3; round++) {
    state.keep('pods', () => named(String(round)), 'soon');
    await clock.advance(6_000);
  }
  assert.equal(lines.length, 1);
  failure = undefined;
  state.keep('pods', () => named('later'), 'soon');
  await clock.advance(6_000);
  assert.deepEqual(await state.read('pods'), named('later'));
});
