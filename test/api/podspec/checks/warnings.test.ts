/** Warnings for workloads, ingresses and claims, in upstream's wording. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, created, type Document, kindNamed } from '../../kinds/samples.ts';

/** Warnings for a change of the sample, without the warning that the sample itself causes. */
const warned = (kind: string, change: (document: Document) => void): string[] =>
  (kindNamed(kind).strategy.warnings?.(created(kind, change), undefined) ?? []).filter(
    (each) => !each.includes('topologySpreadConstraints[0].labelSelector'),
  );

test('warns about dotted names and deprecated node labels in workloads', () => {
  const name =
    'metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]';
  const selector = 'nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead';
  const dotted = ['Deployment', 'ReplicaSet', 'ReplicationController', 'Job'];
  for (const kind of [...dotted, 'DaemonSet', 'StatefulSet']) {
    const change = (document: Document): void => {
      document.metadata['name'] = 'a.b';
      at(document, 'spec', 'template', 'spec')['nodeSelector'] = { 'beta.kubernetes.io/os': 'linux' };
    };
    const own = [...(dotted.includes(kind) ? [name] : []), `spec.template.spec.${selector}`];
    assert.deepEqual(warned(kind, change), own, kind);
    const old = created(kind, change);
    assert.deepEqual(kindNamed(kind).strategy.warnings?.(structuredClone(old), old), [], `${kind} as it was`);
  }
  const nested = (job: Document) => {
    at(job, 'spec', 'jobTemplate', 'spec', 'template', 'spec')['nodeSelector'] = { 'beta.kubernetes.io/os': 'linux' };
  };
  assert.deepEqual(warned('CronJob', nested), [`spec.jobTemplate.spec.template.spec.${selector}`]);
});

test('warns about deprecated annotations of ingresses and claims', () => {
  const annotated = (key: string) => (document: Document) => {
    document.metadata['annotations'] = { [key]: 'x' };
  };
  assert.deepEqual(
    warned('Ingress', (ingress) => {
      annotated('kubernetes.io/ingress.class')(ingress);
      delete at(ingress, 'spec')['ingressClassName'];
    }),
    [`annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead`],
  );
  assert.deepEqual(warned('PersistentVolumeClaim', annotated('volume.beta.kubernetes.io/storage-class')), [
    'metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead',
  ]);
});
