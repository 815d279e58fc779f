/** Status of a claim while its node expands the volume. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PersistentVolumeClaim } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import { CsiError } from '../../../src/kubelet/volumes/csi/port.ts';
import { VolumeExpansion, type VolumeExpansionOptions } from '../../../src/kubelet/volumes/expansion.ts';
import { MemoryApi } from '../memory-api.ts';

function lab(expand: () => Promise<void>) {
  const api = new MemoryApi();
  const allocated = {
    allocatedResources: { storage: '9Gi' },
    allocatedResourceStatuses: { storage: 'NodeResizePending' },
  };
  api.put(resources.persistentVolumes, { metadata: { name: 'pv' }, spec: { capacity: { storage: '9Gi' } } });
  api.put(resources.persistentVolumeClaims, {
    metadata: { name: 'c', namespace: 'ns' },
    spec: { volumeName: 'pv', resources: { requests: { storage: '9Gi' } } },
    status: { capacity: { storage: '4Gi' }, conditions: [{ type: 'Resizing', status: 'True' }], ...allocated },
  });
  const client = api.client();
  const record = { kind: 'csi', uid: 'u', volume: 'v', name: 'pv', claim: 'ns/c' };
  const expansion = new VolumeExpansion({
    claims: {
      claim: () => client.resource(resources.persistentVolumeClaims).get('c', 'ns'),
      persistentVolume: () => client.resource(resources.persistentVolumes).get('pv'),
    },
    records: { all: async () => [record] },
    plugins: { expand },
    events: { about: () => {}, pod: () => {} },
    log: silentLog,
    nowMs: () => 0,
    pod: () => undefined,
  } as unknown as VolumeExpansionOptions);
  expansion.connect(client);
  const claim = (): PersistentVolumeClaim | undefined => api.get(resources.persistentVolumeClaims, 'ns/c');
  const status = () => claim()?.status;
  const request = (storage: string): void => {
    const present = claim();
    if (present === undefined) return;
    const spec = { ...present.spec, resources: { requests: { storage } } };
    api.put(resources.persistentVolumeClaims, { ...present, spec });
  };
  const addCondition = (type: string): void => {
    const present = claim();
    if (present === undefined) return;
    const conditions = [...(present.status?.conditions ?? []), { type, status: 'True' }];
    api.put(resources.persistentVolumeClaims, { ...present, status: { ...present.status, conditions } });
  };
  return { expansion, status, request, addCondition };
}

const state = (status: ReturnType<ReturnType<typeof lab>['status']>) => ({
  step: status?.allocatedResourceStatuses?.['storage'],
  allocated: status?.allocatedResources?.['storage'],
  capacity: status?.capacity?.['storage'],
  conditions: status?.conditions?.map(({ type }) => type),
});

test('keeps the allocated size of an expanded claim and removes the resize condition', async () => {
  let during: string | undefined;
  const { expansion, status } = lab(async () => {
    during = status()?.allocatedResourceStatuses?.['storage'];
  });
  await expansion.run();
  assert.equal(during, 'NodeResizeInProgress');
  assert.deepEqual(state(status()), { step: undefined, allocated: '9Gi', capacity: '9Gi', conditions: [] });
});

test('marks an unsupported expansion infeasible without a retry', async () => {
  let calls = 0;
  const { expansion, status } = lab(async () => {
    calls += 1;
    throw new CsiError('OutOfRange', 'too large');
  });
  await expansion.run();
  await expansion.run();
  const failed = { allocated: '9Gi', capacity: '4Gi', conditions: ['NodeResizeError', 'Resizing'] };
  assert.deepEqual([calls, state(status())], [1, { step: 'NodeResizeInfeasible', ...failed }]);
  assert.match(status()?.conditions?.[0]?.message ?? '', /^failed to expand pvc with .*too large/);
});

test('retries after a final error until the claim requests a different size', async () => {
  let calls = 0;
  const { expansion, status, request } = lab(async () => {
    calls += 1;
    throw new CsiError('Internal', 'broken');
  });
  for (let round = 0; round < 3; round++) await expansion.run();
  assert.deepEqual([calls, state(status()).step], [3, 'NodeResizeInProgress']);
  request('5Gi');
  for (let round = 0; round < 3; round++) await expansion.run();
  assert.deepEqual([calls, state(status()).step], [4, 'NodeResizeInfeasible']);
});

test('does not change the claim after an error that is not final', async () => {
  const { expansion, status } = lab(() => Promise.reject(new CsiError('Unavailable', 'away')));
  await expansion.run();
  const expected = { step: 'NodeResizeInProgress', allocated: '9Gi', capacity: '4Gi', conditions: ['Resizing'] };
  assert.deepEqual(state(status()), expected);
});

for (const [outcome, error] of [
  ['succeeds', undefined],
  ['fails', new CsiError('Internal', 'broken')],
] as const) {
  test(`keeps a condition that another client sets while an expansion ${outcome}`, async () => {
    const { expansion, status, addCondition } = lab(async () => {
      addCondition('ModifyVolumeError');
      if (error !== undefined) throw error;
    });
    await expansion.run();
    const expected = error === undefined ? [] : ['NodeResizeError', 'Resizing'];
    assert.deepEqual(
      status()
        ?.conditions?.map(({ type }) => type)
        .sort(),
      ['ModifyVolumeError', ...expected],
    );
  });
}
