import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { PodResize, type ResizeHost } from '../../../src/kubelet/pods/resize.ts';

const podOf = (cpu: string): Pod => ({
  metadata: { name: 'p', generation: cpu === '20m' ? 1 : 2 },
  spec: { containers: [{ name: 'a', resources: { requests: { cpu } } }] },
});

test('reports a resize in progress when the status has the old resources', () => {
  const resize = new PodResize(podOf('20m'), {} as ResizeHost);
  const unchanged = podOf('20m');
  assert.equal(resize.stateOf(resize.allottedPod(unchanged)), undefined);
  const allotted = resize.allottedPod(podOf('25m'));
  assert.equal(allotted.spec?.containers[0]?.resources?.requests?.['cpu'], '20m');
  assert.deepEqual(resize.stateOf(allotted), { type: 'PodResizeInProgress' });
});
