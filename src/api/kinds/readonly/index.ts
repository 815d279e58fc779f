/**
 * Kinds that can be read and of which there are none: nothing here runs them, so none can be made, and discovery says so by their
 * verbs. Clients that ask about them as a matter of course (`kubectl apply --prune` lists each kind of its built-in set and gives up
 * when one is unknown) get an empty answer instead of an error about the question.
 */
import type { KubeObject } from '../../meta/object.ts';
import { ageColumn, nameColumn } from '../../printing/columns.ts';
import type { KindDefinition } from '../../registry/definition.ts';

type Named = Pick<KindDefinition, 'group' | 'version' | 'kind' | 'plural' | 'namespaced'> &
  Partial<Pick<KindDefinition, 'shortNames' | 'categories'>>;

function readOnly(named: Named, schemaPackage: string): KindDefinition<KubeObject> {
  return {
    ...named,
    singular: named.kind.toLowerCase(),
    listKind: `${named.kind}List`,
    verbs: ['get', 'list', 'watch'],
    schemaName: `${schemaPackage}.${named.kind}`,
    storagePrefix: named.plural,
    strategy: {},
    columns: [nameColumn, ageColumn],
  };
}

export const persistentVolumes = readOnly(
  {
    group: '',
    version: 'v1',
    kind: 'PersistentVolume',
    plural: 'persistentvolumes',
    namespaced: false,
    shortNames: ['pv'],
  },
  'io.k8s.api.core.v1',
);

export const persistentVolumeClaims = readOnly(
  {
    group: '',
    version: 'v1',
    kind: 'PersistentVolumeClaim',
    plural: 'persistentvolumeclaims',
    namespaced: true,
    shortNames: ['pvc'],
  },
  'io.k8s.api.core.v1',
);

export const statefulSets = readOnly(
  {
    group: 'apps',
    version: 'v1',
    kind: 'StatefulSet',
    plural: 'statefulsets',
    namespaced: true,
    shortNames: ['sts'],
    categories: ['all'],
  },
  'io.k8s.api.apps.v1',
);

export const jobs = readOnly(
  { group: 'batch', version: 'v1', kind: 'Job', plural: 'jobs', namespaced: true, categories: ['all'] },
  'io.k8s.api.batch.v1',
);

export const cronJobs = readOnly(
  {
    group: 'batch',
    version: 'v1',
    kind: 'CronJob',
    plural: 'cronjobs',
    namespaced: true,
    shortNames: ['cj'],
    categories: ['all'],
  },
  'io.k8s.api.batch.v1',
);

export const ingresses = readOnly(
  {
    group: 'networking.k8s.io',
    version: 'v1',
    kind: 'Ingress',
    plural: 'ingresses',
    namespaced: true,
    shortNames: ['ing'],
  },
  'io.k8s.api.networking.v1',
);
