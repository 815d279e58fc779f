/** Wait for the claims of a pod before it is bound. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node, PersistentVolumeClaim, Pod } from '../../src/api/generated/core/v1.ts';
import type { PodInfo } from '../../src/api/podspec/scheduling/pod-info.ts';
import { resources } from '../../src/api/resources.ts';
import { SELECTED_NODE } from '../../src/api/volumes/binding.ts';
import type { ClusterView } from '../../src/scheduler/core/cluster.ts';
import type { NodeInfo } from '../../src/scheduler/core/node-info.ts';
import { VolumeBinder, type VolumeBinderDeps } from '../../src/scheduler/volumes.ts';
import { ManualClock } from '../client/clocks.ts';
import { localInformers } from '../client/local-informers.ts';

const NODE: Node = { metadata: { name: 'n1' } };

/** Time for which a pod waits for its claim, in seconds, and the error that ends it. */
async function waited(bindTimeoutSeconds: number): Promise<[number, string]> {
  const clock = new ManualClock();
  const { factory, set } = localInformers();
  const claim: PersistentVolumeClaim = { metadata: { name: 'c', namespace: 'ns' }, spec: { storageClassName: 'slow' } };
  const pod: Pod = {
    metadata: { name: 'p', namespace: 'ns', uid: 'u' },
    spec: { containers: [], volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] },
  };
  set('pods', pod);
  set('persistentvolumeclaims', claim);
  const updated: PersistentVolumeClaim[] = [];
  const update = async (given: PersistentVolumeClaim): Promise<void> => void updated.push(given);
  const binder = new VolumeBinder(
    {
      clock,
      client: { resource: () => ({ update }) },
      bindTimeoutSeconds: () => bindTimeoutSeconds,
    } as unknown as VolumeBinderDeps,
    {
      pods: factory.informer(resources.pods),
      claims: factory.informer(resources.persistentVolumeClaims),
      volumes: factory.informer(resources.persistentVolumes),
    },
  );
  const lister = {
    claim: () => claim,
    volumes: () => [],
    storageClass: () => ({ provisioner: 'p', volumeBindingMode: 'WaitForFirstConsumer' }),
  };
  const info = { pod, key: 'ns/p', uid: 'u', namespace: 'ns' } as PodInfo;
  assert.equal(
    binder.reserve(info, { node: NODE } as NodeInfo, { volumes: lister } as unknown as ClusterView),
    undefined,
  );
  const startMs = clock.nowMs();
  let error = '';
  binder.preBind(info, NODE)?.catch((given: Error) => (error = given.message));
  while (error === '' && clock.nowMs() < startMs + 1_000_000) await clock.advance(1_000);
  assert.equal(updated[0]?.metadata?.annotations?.[SELECTED_NODE], 'n1');
  return [(clock.nowMs() - startMs) / 1_000, error];
}

test('waits for the volume binding of a pod for the bindTimeoutSeconds of its profile', async () => {
  assert.deepEqual(await waited(20), [20, 'binding volumes: claims of the pod are not bound after 20s']);
  assert.deepEqual(await waited(600), [600, 'binding volumes: claims of the pod are not bound after 600s']);
});
