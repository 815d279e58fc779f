/** Claims of the embedded local provisioner with real containers. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { PersistentVolumeClaimSpec } from '../../../src/api/generated/core/v1.ts';
import { eventually } from '../harness.ts';
import { assignments, idle, type PodLab, pod, shell } from './lab.ts';

const LIMIT = { timeout: 90_000 };
const spec: PersistentVolumeClaimSpec = {
  accessModes: ['ReadWriteOnce'],
  resources: { requests: { storage: '10Mi' } },
};
const claim = (name: string, more: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: 'default' },
  spec: { ...spec, ...more },
});
const directories = (lab: PodLab): Promise<string[]> =>
  readdir(join(lab.appliance.root, 'var/lib/origin/local-volumes'));

const deleted = (lab: PodLab, volume: string): Promise<true> =>
  eventually('the directory to be deleted', 30_000, async () =>
    (await directories(lab)).includes(volume) ? undefined : true,
  );

export function claimTests(lab: () => PodLab): void {
  test('keeps the data of a claim between pods, and deletes the data with the claim', LIMIT, async () => {
    const kubectl = (...args: string[]): Promise<string> => lab().kubectl(...args);
    const user = (name: string, script: string, readOnly = false) =>
      pod(name, {
        restartPolicy: 'Never',
        securityContext: { fsGroup: 4321, runAsUser: 1000 },
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'kept', readOnly } }],
        initContainers: [
          shell('mkdir -p /data/deep || true', { name: 'make', volumeMounts: [{ name: 'data', mountPath: '/data' }] }),
        ],
        containers: [
          shell(script, {
            volumeMounts: [
              { name: 'data', mountPath: '/data' },
              { name: 'data', mountPath: '/sub', subPath: 'deep' },
            ],
          }),
        ],
      });
    await lab().apply(claim('kept'));
    await lab().apply(
      user('writer', 'echo written > /data/file && echo below > /sub/file && stat -c owner=%u:%g /data/file'),
    );
    await lab().over('writer');
    assert.equal((await lab().logs('writer')).trim(), 'owner=1000:4321');
    assert.equal(
      (await kubectl('get', 'pvc', 'kept', '-o', 'jsonpath={.status.phase} {.spec.storageClassName}')).trim(),
      'Bound hyperedge-local',
    );
    const volume = (await kubectl('get', 'pvc', 'kept', '-o', 'jsonpath={.spec.volumeName}')).trim();
    await kubectl('delete', 'pod', 'writer');
    const read =
      'echo "file=$(cat /data/file)"; echo "deep=$(cat /data/deep/file)"; touch /data/x 2>/dev/null; echo "touch=$?"';
    await lab().apply(user('reader', read, true));
    await lab().over('reader');
    const output = assignments(await lab().logs('reader'));
    assert.deepEqual(Object.fromEntries(output), { file: 'written', deep: 'below', touch: '1' });
    assert.ok((await directories(lab())).includes(volume));
    await kubectl('delete', 'pod', 'reader');
    await kubectl('delete', 'pvc', 'kept');
    await deleted(lab(), volume);
    await kubectl('wait', '--for=delete', `pv/${volume}`, '--timeout=20s');
  });

  test('deletes a generic ephemeral volume with its pod', LIMIT, async () => {
    await lab().apply(
      pod('own-volume', {
        volumes: [{ name: 'data', ephemeral: { volumeClaimTemplate: { spec } } }],
        containers: [idle({ volumeMounts: [{ name: 'data', mountPath: '/data' }] })],
      }),
    );
    await lab().kubectl('wait', '--for=condition=Ready', 'pod/own-volume', '--timeout=30s');
    const volume = (await lab().kubectl('get', 'pvc', 'own-volume-data', '-o', 'jsonpath={.spec.volumeName}')).trim();
    assert.match(volume, /^pvc-/);
    await lab().kubectl('delete', 'pod', 'own-volume');
    await deleted(lab(), volume);
  });

  test("reports upstream's event for a pod with nodeName and an unbound claim", LIMIT, async () => {
    await lab().apply(claim('unbound', { storageClassName: '' }));
    const nodeName = (await lab().kubectl('get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}')).trim();
    await lab().apply(
      pod('early', { nodeName, volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'unbound' } }] }),
    );
    await lab().event('early', 'FailedMount', /unmounted volumes=\[data\].*PVC default\/unbound: PVC is not bound/);
    await lab().kubectl('delete', 'pod', 'early', '--force');
    await lab().kubectl('delete', 'pvc', 'unbound');
  });
}
