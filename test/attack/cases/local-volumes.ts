/** Attempts of a compromised node to have another node mount a directory of its choice for a tenant. */
import assert from 'node:assert/strict';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../../e2e/harness.ts';
import { pod, shell } from '../../e2e/pods/lab.ts';
import type { AttackCase } from '../port.ts';

const foreignDirectory: AttackCase = {
  finding: 51,
  // Other cases use the first node in the list.
  exclusive: true,
  title: 'a node that reports a false directory for local volumes cannot make another node mount this directory',
  attack: async (lab) => {
    const tenant = await lab.tenant('edit');
    const { namespace } = tenant;
    const [target] = JSON.parse(await lab.pods.kubectl('get', 'nodes', '-o', 'json')).items;
    // Stands for a directory that a pod of the attacker has filled on the other node, such as an emptyDir.
    const links = join(lab.appliance.root, 'links');
    const secret = join(lab.appliance.root, 'secret');
    await mkdir(links);
    await mkdir(secret);
    await writeFile(join(secret, 'key'), 'private');
    await lab.pods.apply({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: 'liar',
        annotations: { 'local-volumes.hyperedge.dev/directory': links },
        labels: { 'kubernetes.io/hostname': target.metadata.labels['kubernetes.io/hostname'] },
      },
    });
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data', annotations: { 'volume.kubernetes.io/selected-node': 'liar' } },
      spec: {
        storageClassName: 'hyperedge-local',
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Mi' } },
      },
    };
    const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
    const made = await lab.request(tenant, 'POST', path, claim);
    assert.equal(made.code, 201, made.body);
    await symlink(secret, join(links, `pvc-${JSON.parse(made.body).metadata.uid}`));
    await eventually('the volume', 30_000, async () =>
      (await lab.pods.kubectl('get', 'pvc', 'data', '-n', namespace)).includes('Bound') ? true : undefined,
    );
    const thief = pod(
      'thief',
      {
        nodeName: target.metadata.name,
        containers: [shell('cat /data/key; sleep 600', { volumeMounts: [{ name: 'data', mountPath: '/data' }] })],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
      },
      { namespace },
    );
    const started = await lab.request(tenant, 'POST', `/api/v1/namespaces/${namespace}/pods`, thief);
    assert.equal(started.code, 201, started.body);
    await eventually('the refusal', 40_000, async () => {
      const { phase } = lab.pods.pod('thief', namespace)?.status ?? {};
      assert.notEqual(phase, 'Running');
      const events = await lab.pods.kubectl('get', 'events', '-n', namespace, '-o', 'json');
      return events.includes("is not in the directory of this node's local volumes") || undefined;
    });
    await lab.pods.kubectl('delete', 'namespace', namespace, '--wait=false');
    await lab.pods.kubectl('delete', 'node', 'liar');
    await rm(links, { recursive: true });
    await rm(secret, { recursive: true });
  },
};

export const cases: readonly AttackCase[] = [foreignDirectory];
