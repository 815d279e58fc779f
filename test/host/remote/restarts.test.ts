import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { CodedError } from '../../../src/base/errors.ts';
import { RemoteRestarts, updateInProgress } from '../../../src/host/remote/restarts.ts';
import { ManualClock } from '../../client/clocks.ts';

const STARTED = '2026-01-02T03:04:05.000Z';
let ready: PromiseWithResolvers<void>;
let asked: string[];
let refusal: string | undefined;
let restarts: RemoteRestarts;

beforeEach(() => {
  ready = Promise.withResolvers();
  asked = [];
  refusal = undefined;
  restarts = new RemoteRestarts({
    components: ['api', 'etcd'],
    restart: (component) => {
      asked.push(component);
      return ready.promise;
    },
    refusal: async () => refusal,
    clock: new ManualClock(Date.parse(STARTED)),
  });
});

const failsWith = (code: string, text: RegExp) => (error: unknown) =>
  error instanceof CodedError && error.code === code && text.test(error.message);

test('keeps the outcome of a restart for clients that have lost their connection', async () => {
  const { restart, ended } = await restarts.start('api');
  assert.deepEqual(restarts.report(), { components: ['api', 'etcd'], current: restart });
  ready.reject(new Error('api: revision 4 failed'));
  assert.equal((await ended).error, 'api: revision 4 failed');
  const last = { ...restart, endedAt: STARTED, error: 'api: revision 4 failed' };
  assert.deepEqual(restarts.report(), { components: ['api', 'etcd'], last });
});

test('restarts a single component at a time, also when requests arrive together', async () => {
  const both = await Promise.allSettled([restarts.start('api'), restarts.start('etcd')]);
  assert.deepEqual(
    both.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  );
  await assert.rejects(restarts.start('api'), failsWith('busy', /^api is being restarted/));
  assert.deepEqual(asked, ['api']);
  ready.resolve();
  const [first] = both;
  if (first.status === 'fulfilled') assert.equal((await first.value.ended).error, undefined);
  await restarts.start('etcd');
  assert.deepEqual(asked, ['api', 'etcd']);
});

test('refuses to restart unknown components, and any component on a worker or during an update of the host', async () => {
  for (const name of ['', 'controllers', '../api', 'api\n', 'constructor', 'x'.repeat(10_000)])
    await assert.rejects(restarts.start(name), failsWith('rejected', /^component: .{0,120}use one of api, etcd$/));
  refusal = 'an update is in progress';
  await assert.rejects(restarts.start('api'), failsWith('conflict', /^an update is in progress$/));
  assert.deepEqual([asked, restarts.report()], [[], { components: ['api', 'etcd'] }]);
  refusal = undefined;
  await restarts.start('api');
  const worker = new RemoteRestarts({
    components: [],
    restart: async () => undefined,
    refusal: async () => undefined,
    clock: new ManualClock(),
  });
  await assert.rejects(worker.start('api'), failsWith('absent', /choose a master/));
});

test('an update of the host that has begun and is not confirmed counts as in progress', () => {
  const record = { id: '3', from: '1.0.0', to: '2.0.0', message: '', timeoutMs: 1 };
  const refused = (phase: string): boolean => updateInProgress(JSON.stringify({ ...record, phase }), 'f') !== undefined;
  assert.deepEqual(['trying', 'rollingBack', 'done', 'failed'].map(refused), [true, true, false, false]);
  assert.match(
    updateInProgress(JSON.stringify({ ...record, phase: 'trying' }), 'f') ?? '',
    /update of this host to 2\.0\.0/,
  );
  assert.equal(updateInProgress(undefined, 'f'), undefined);
  for (const damaged of ['', '{', 'null', '[]', JSON.stringify({ ...record, phase: 'other' })])
    assert.throws(() => updateInProgress(damaged, 'f'), failsWith('damaged', /^f: /));
});
