/** Workloads for upstream's components: one object of every kind that they handle. */
import { IMAGE, NAMESPACE } from './cluster.ts';

const container = (script: string, more: object = {}) => ({
  name: 'c',
  image: IMAGE,
  command: ['sh', '-c', script],
  ...more,
});
export const labelled = (app: string, script: string, spec: object = {}, more: object = {}) => ({
  metadata: { labels: { app } },
  spec: { terminationGracePeriodSeconds: 1, containers: [container(script, more)], ...spec },
});
const serve = 'echo hello > /www/index.html; echo started; exec httpd -f -p 8080 -h /www';
export const forever = 'exec sleep 2147483647';
/** An object in the tests' namespace, unless it is cluster-scoped. */
export const object = (apiVersion: string, kind: string, name: string, rest: object, namespaced = true) => ({
  apiVersion,
  kind,
  metadata: { name, ...(namespaced ? { namespace: NAMESPACE } : {}) },
  ...rest,
});
export const selecting = (app: string) => ({ selector: { matchLabels: { app } } });
const claim = {
  accessModes: ['ReadWriteOnce'],
  storageClassName: 'local',
  resources: { requests: { storage: '1Gi' } },
};
const ready = { readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 } };

/**
 * Objects of all kinds that the components handle. Some are in API versions that only clients of Kubernetes 1.20 use.
 */
export const WORKLOADS = [
  object('v1', 'Namespace', NAMESPACE, {}, false),
  object('apps/v1', 'Deployment', 'web', {
    spec: { replicas: 2, ...selecting('web'), template: labelled('web', serve, {}, ready) },
  }),
  object('v1', 'Service', 'web', { spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] } }),
  object('policy/v1beta1', 'PodDisruptionBudget', 'web', { spec: { minAvailable: 2, ...selecting('web') } }),
  object('autoscaling/v2beta2', 'HorizontalPodAutoscaler', 'web', {
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
      minReplicas: 2,
      maxReplicas: 4,
    },
  }),
  object(
    'storage.k8s.io/v1',
    'StorageClass',
    'local',
    {
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    },
    false,
  ),
  object(
    'v1',
    'PersistentVolume',
    'local-0',
    {
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'local',
        hostPath: { path: '/tmp', type: 'Directory' },
      },
    },
    false,
  ),
  object('apps/v1', 'StatefulSet', 'db', {
    spec: {
      serviceName: 'db',
      ...selecting('db'),
      template: labelled('db', forever, {}, { volumeMounts: [{ name: 'data', mountPath: '/data' }] }),
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim }],
    },
  }),
  object('apps/v1', 'DaemonSet', 'agent', { spec: { ...selecting('agent'), template: labelled('agent', forever) } }),
  object('batch/v1', 'Job', 'once', {
    spec: {
      completions: 2,
      ttlSecondsAfterFinished: 5,
      template: labelled('once', 'true', { restartPolicy: 'Never' }),
    },
  }),
  object('batch/v1', 'Job', 'bad', {
    spec: { backoffLimit: 0, template: labelled('bad', 'exit 3', { restartPolicy: 'Never' }) },
  }),
  object('batch/v1beta1', 'CronJob', 'tick', {
    spec: {
      schedule: '*/1 * * * *',
      jobTemplate: { spec: { template: labelled('tick', 'true', { restartPolicy: 'Never' }) } },
    },
  }),
  object('v1', 'ResourceQuota', 'quota', { spec: { hard: { pods: '30', 'count/deployments.apps': '3' } } }),
];
