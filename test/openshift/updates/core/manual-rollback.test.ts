import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  planManualRollback,
  type RollbackFacts,
  type StoreFacts,
  type SwitchRecord,
} from '../../../../src/openshift/updates/core/index.ts';
import { parseSwitchRecord } from '../../../../src/openshift/updates/core/port.ts';

const DONE: SwitchRecord = {
  id: '7',
  from: '0.1.0',
  to: '0.2.0',
  phase: 'done',
  message: '',
  timeoutMs: 60_000,
  snapshot: 'store-0.1.0.db',
  readableLevel: 3,
};
const STORE: StoreFacts = {
  level: 3,
  members: 1,
  snapshot: { name: 'store-0.1.0.db', takenAt: '2026-01-01T00:00:00Z' },
};
const facts = (change: Partial<RollbackFacts> = {}): RollbackFacts => ({
  record: DONE,
  link: '0.2.0',
  hasExecutable: true,
  store: STORE,
  ...change,
});
const store = (change: Partial<StoreFacts>): RollbackFacts => facts({ store: { ...STORE, ...change } });

test('a manual rollback keeps a store that the former release can read', () => {
  const planned = planManualRollback(facts(), false);
  assert.deepEqual(planned, {
    id: '7',
    from: '0.1.0',
    to: '0.2.0',
    phase: 'rollingBack',
    timeoutMs: 60_000,
    readableLevel: 3,
    message: 'rolled back from 0.2.0 to 0.1.0 on the host',
  });
  assert.deepEqual(parseSwitchRecord(JSON.stringify(planned), 'record.json'), planned);
});

test('a manual rollback keeps a store of unknown level unless --restore-store is given', () => {
  assert.equal(planManualRollback(store({ level: undefined, members: undefined }), false).snapshot, undefined);
  assert.equal(planManualRollback(store({ level: undefined, members: undefined }), true).snapshot, 'store-0.1.0.db');
});

test('a manual rollback replaces a store that the former release cannot read only with --restore-store', () => {
  assert.throws(
    () => planManualRollback(store({ level: 4 }), false),
    /reads stores up to level 3, and the store has level 4; add --restore-store to restore the snapshot of 2026-01-01T00:00:00Z; all later changes are lost/,
  );
  assert.equal(planManualRollback(store({ level: 4 }), true).snapshot, 'store-0.1.0.db');
  assert.throws(() => planManualRollback(store({ level: 4, snapshot: undefined }), true), /snapshot of the update/);
});

test('rejects a manual rollback that would replace the store of one of several members', () => {
  assert.throws(() => planManualRollback(store({ level: 4, members: 3 }), false), /the store has 3 members/);
  assert.throws(() => planManualRollback(store({ level: 4, members: 3 }), true), /the store has 3 members/);
  assert.throws(() => planManualRollback(store({ members: 3 }), true), /--restore-store: the store has 3 members/);
  assert.equal(planManualRollback(store({ members: 3 }), false).snapshot, 'store-0.1.0.db');
});

test('a manual rollback assumes store level 2 for a former release whose manifest states no level', () => {
  const { readableLevel: _, ...record } = DONE;
  assert.throws(() => planManualRollback(facts({ record }), false), /up to level 2, and the store has level 3/);
});

test('rejects a manual rollback on hosts without a former release', () => {
  assert.throws(() => planManualRollback(facts({ record: undefined }), false), /no record of a former release/);
  assert.throws(() => planManualRollback(facts({ record: { ...DONE, from: '0.2.0' } }), false), /no record/);
  assert.throws(() => planManualRollback(facts({ link: '0.3.0' }), false), /names 0\.3\.0, but .* to 0\.2\.0/);
  assert.throws(() => planManualRollback(facts({ link: undefined }), false), /names no release/);
  assert.throws(() => planManualRollback(facts({ hasExecutable: false }), false), /executable of 0\.1\.0 is missing/);
});

test('hyperedge bundle rollback --restore-store restores the store of a host that was already rolled back', () => {
  const back = { record: { ...DONE, phase: 'failed' }, link: '0.1.0' } as const;
  assert.throws(() => planManualRollback(facts(back), false), /already runs 0\.1\.0 again/);
  assert.equal(planManualRollback(facts(back), true).snapshot, 'store-0.1.0.db');
});

test('a manual rollback during the trial of a release starts the rollback immediately', () => {
  assert.equal(planManualRollback(facts({ record: { ...DONE, phase: 'trying' } }), false).phase, 'rollingBack');
});
