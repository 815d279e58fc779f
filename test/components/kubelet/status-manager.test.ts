import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Pod } from 'kubernetes-types/core/v1';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import { StatusManager } from '../../../src/components/kubelet/pods/status-manager.ts';
import { realClock } from './lab.ts';
import { MemoryApi } from './memory-api.ts';

const stored = (): Pod => ({
  metadata: { name: 'steady', namespace: 'default', uid: 'u' },
  status: { phase: 'Pending' },
});
const phaseAt = (api: MemoryApi): string | undefined => api.get(resources.pods, 'default/steady')?.status?.phase;

async function running(api: MemoryApi): Promise<StatusManager> {
  api.put(resources.pods, stored());
  const statuses = new StatusManager({ clock: realClock, log: silentLog });
  statuses.connect(api.client());
  statuses.setTarget('u', stored());
  statuses.set('u', { phase: 'Running' });
  for (let i = 0; i < 20 && phaseAt(api) !== 'Running'; i += 1) await turn();
  assert.equal(phaseAt(api), 'Running');
  return statuses;
}

test('pods that a stopping host ends are not over: the API hears no more of them, also when it tells of them itself', async () => {
  const api = new MemoryApi();
  const statuses = await running(api);
  statuses.stop();
  statuses.set('u', { phase: 'Failed' });
  // The watch brings the last write of before while the pods are being ended.
  statuses.setTarget('u', { ...stored(), status: { phase: 'Running' } });
  statuses.finish('u');
  for (let i = 0; i < 20; i += 1) await turn();
  assert.equal(phaseAt(api), 'Running');
});

test('before that a pod that ends is reported', async () => {
  const api = new MemoryApi();
  const statuses = await running(api);
  statuses.set('u', { phase: 'Failed' });
  for (let i = 0; i < 20 && phaseAt(api) !== 'Failed'; i += 1) await turn();
  assert.equal(phaseAt(api), 'Failed');
  statuses.stop();
});
