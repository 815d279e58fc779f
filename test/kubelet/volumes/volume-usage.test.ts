import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resources } from '../../../src/api/resources.ts';
import { toUid } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { MeasuredUsage } from '../../../src/kubelet/volumes/types/type.ts';
import { VolumeUsages, type VolumeUsagesOptions } from '../../../src/kubelet/volumes/usage.ts';
import { settle } from '../../client/clocks.ts';
import { MemoryApi } from '../memory-api.ts';

const FULL = 'hyperedge.dev/VolumeFull';

function lab(...initial: string[]) {
  const api = new MemoryApi();
  const client = api.client();
  const put = (types: readonly string[]): void => {
    const conditions = types.map((type) => ({ type, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }));
    api.put(resources.persistentVolumeClaims, { metadata: { name: 'c', namespace: 'ns' }, status: { conditions } });
  };
  put(initial);
  const record = { kind: 'local', uid: 'u', volume: 'v', name: 'pv', claim: 'ns/c', path: '/p', limitBytes: 10 };
  const state = {
    used: 1,
    /** Conditions that another client sets after the kubelet has read the claim. */
    meanwhile: undefined as readonly string[] | undefined,
    events: [] as string[],
    drivers: [] as string[],
    /** Drivers that were called to measure a volume. */
    calls: [] as string[],
  };
  const measured = Promise.withResolvers<MeasuredUsage | undefined>();
  const csi = (driver: string) => ({ ...record, kind: 'csi', uid: driver, claim: `ns/${driver}`, driver });
  const usages = new VolumeUsages({
    claims: {
      claim: async () => {
        const found = await client.resource(resources.persistentVolumeClaims).get('c', 'ns');
        if (state.meanwhile !== undefined) put(state.meanwhile);
        return found;
      },
    },
    records: { all: async () => [...state.drivers.map(csi), record] },
    plugins: {
      isMeasured: ({ kind }: { readonly kind: string }) => kind === 'csi',
      usage: async ({ uid }: { readonly uid: string }) => {
        state.calls.push(uid);
        return uid === 'hangs' ? measured.promise : { capacityBytes: 9, availableBytes: 8, usedBytes: 1 };
      },
    },
    events: { pod: (_pod: unknown, _type: string, reason: string) => void state.events.push(reason) },
    host: {
      foreignFileSystem: async () => ({ capacityBytes: 100, availableBytes: 50, inodes: 9, inodesFree: 8 }),
    },
    trees: { usage: async () => new Map([['/p', state.used]]) },
    log: silentLog,
    nowMs: () => 0,
    pod: () => ({}),
  } as unknown as VolumeUsagesOptions);
  usages.connect(client);
  const conditions = () => api.get(resources.persistentVolumeClaims, 'ns/c')?.status?.conditions ?? [];
  const types = () =>
    conditions()
      .map(({ type }) => type)
      .sort();
  return { api, usages, state, conditions, types, respond: () => measured.resolve(undefined) };
}

test('reports a full volume without removing a condition that another client sets in the meantime', async () => {
  const { usages, state, types } = lab();
  state.used = 10;
  state.meanwhile = ['FileSystemResizePending'];
  await usages.measure();
  assert.deepEqual(types(), ['FileSystemResizePending', FULL]);
  state.meanwhile = undefined;
  state.used = 1;
  await usages.measure();
  assert.deepEqual(types(), ['FileSystemResizePending']);
  assert.deepEqual(state.events, ['VolumeConditionAbnormal', 'VolumeConditionNormal']);
});

test('the kubelet repeats a failed report of a full volume without a second event', async () => {
  const { api, usages, state, types } = lab();
  state.used = 10;
  await usages.measure();
  state.used = 1;
  api.down = true;
  await usages.measure();
  assert.deepEqual(types(), [FULL]);
  api.down = false;
  await usages.measure();
  assert.deepEqual(types(), []);
  assert.deepEqual(state.events, ['VolumeConditionAbnormal', 'VolumeConditionNormal']);
});

test('the kubelet removes the condition of a full volume that an earlier kubelet process has set', async () => {
  const { usages, state, types } = lab(FULL, 'Resizing');
  await usages.measure();
  assert.deepEqual(types(), ['Resizing']);
  assert.deepEqual(state.events, []);
});

test('keeps the transition time while a volume stays full', async () => {
  const { usages, state, conditions } = lab(FULL);
  state.used = 12;
  await usages.measure();
  const [condition] = conditions();
  assert.match(condition?.message ?? '', /12 of 10 bytes/);
  assert.equal(condition?.lastTransitionTime, '2026-01-01T00:00:00Z');
});

test('measures the other volumes while a driver does not respond, and calls that driver only once', async () => {
  const { usages, state, respond } = lab();
  state.drivers = ['hangs', 'works'];
  await usages.measure();
  await usages.measure();
  assert.equal(usages.ofPod(toUid('u')).length, 1);
  assert.equal(usages.ofPod(toUid('works')).length, 1);
  assert.deepEqual(state.calls, ['hangs', 'works', 'works']);
  respond();
  await settle();
  await usages.measure();
  assert.deepEqual(state.calls.filter((driver) => driver === 'hangs').length, 2);
});
