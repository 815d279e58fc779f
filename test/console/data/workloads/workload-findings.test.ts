import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Event, Pod } from '../../../../src/api/generated/core/v1.ts';
import { workloadFindings } from '../../../../src/console/data/workloads/workload-findings.ts';

const container = { name: 'app', image: 'reg/none:1', imageID: '', ready: false, restartCount: 0 };
const pod = (name: string, state: object, more: object = {}): Pod => ({
  metadata: { name, uid: name, ...more },
  spec: { nodeName: 'n1', containers: [{ name: 'app' }] },
  status: { phase: 'Pending', containerStatuses: [{ ...container, state }] },
});
const pulling = { waiting: { reason: 'ImagePullBackOff', message: 'Back-off' } };
const failed = (uid: string): Event => ({
  involvedObject: { uid },
  reason: 'Failed',
  message: 'Failed to pull image: manifest unknown',
  metadata: {},
});
const facts = { events: [failed('a')], nodes: [], nowMs: 0 };

describe('findings of a workload', () => {
  it('shows each cause once, with an example pod and the number of pods', () => {
    const found = workloadFindings([pod('a', pulling), pod('b', pulling)], {
      ...facts,
      events: [failed('a'), failed('b')],
    });
    assert.deepEqual(
      found.map(({ pod: name, pods, finding }) => [name, pods, finding.severity]),
      [['a', 2, 'error']],
    );
    assert.match(found[0]?.finding.title ?? '', /the image reg\/none:1 does not exist in the registry/);
  });

  it('findings of a workload use the events of the pod itself', () => {
    const found = workloadFindings([pod('a', pulling), pod('b', pulling)], facts);
    assert.equal(found.length, 2);
  });

  it('ignores pods that run, start, or are being deleted', () => {
    const pods = [
      pod('a', { running: {} }),
      pod('b', { waiting: { reason: 'ContainerCreating' } }),
      pod('c', pulling, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    ];
    assert.deepEqual(workloadFindings(pods, facts), []);
  });
});
