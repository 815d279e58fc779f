/** One valid document for every stored kind, as a user would create it. */
import type { KindDefinition, StrategyContext } from '../../../src/api/registry/definition.ts';
import { builtinKinds } from '../../../src/api/registry/index.ts';
import { OPENSHIFT_CONTENTS } from './openshift-samples.ts';

export type Document = Record<string, unknown> & { metadata: Record<string, unknown> };

const container = {
  name: 'main',
  image: 'example.com/app:1',
  ports: [{ containerPort: 8080, name: 'http' }],
  env: [
    { name: 'A', value: 'b' },
    { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
    { name: 'C', valueFrom: { configMapKeyRef: { name: 'config', key: 'c' } } },
  ],
  resources: { limits: { cpu: '500m', memory: '64Mi' } },
  livenessProbe: { httpGet: { port: 'http' } },
  readinessProbe: { exec: { command: ['true'] } },
  volumeMounts: [{ name: 'data', mountPath: '/data' }],
  securityContext: { runAsUser: 1000, capabilities: { drop: ['ALL'] } },
};

const podSpec = {
  serviceAccountName: 'default',
  initContainers: [
    { name: 'init', image: 'busybox' },
    { name: 'sidecar', image: 'busybox', restartPolicy: 'Always', startupProbe: { tcpSocket: { port: 1 } } },
  ],
  containers: [container],
  volumes: [
    { name: 'data', emptyDir: {} },
    { name: 'secret', secret: { secretName: 's' } },
    {
      name: 'all',
      projected: {
        sources: [
          { serviceAccountToken: { path: 'token' } },
          { configMap: { name: 'ca', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
          { downwardAPI: { items: [{ path: 'ns', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
        ],
      },
    },
  ],
  tolerations: [{ operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300, key: 'k' }],
  affinity: {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'x' } } },
      ],
    },
  },
  topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway' }],
};

const labels = { app: 'x' };
const workloadSpec = { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: podSpec } };

const request = btoa('-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n');

const webhook = {
  name: 'hook.example.com',
  clientConfig: { service: { name: 'hook', namespace: 'ns', path: '/admit' } },
  rules: [{ operations: ['CREATE'], apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'] }],
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
};

const deviceClaim = {
  devices: {
    requests: [
      {
        name: 'gpu',
        exactly: {
          deviceClassName: 'gpu',
          selectors: [
            { cel: { expression: "device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('8Gi'))" } },
          ],
          tolerations: [{ key: 'example.com/old' }],
        },
      },
      {
        name: 'net',
        firstAvailable: [
          { name: 'fast', deviceClassName: 'fast' },
          { name: 'any', deviceClassName: 'nic' },
        ],
      },
    ],
    constraints: [{ requests: ['gpu', 'net'], matchAttribute: 'example.com/numa' }],
    config: [{ requests: ['net/fast'], opaque: { driver: 'net.example.com', parameters: { mtu: 9000 } } }],
  },
};

const CONTENTS: Readonly<Record<string, object>> = {
  ConfigMap: { data: { a: 'b' }, binaryData: { c: 'aGk=' } },
  Endpoints: { subsets: [{ addresses: [{ ip: '10.1.2.3' }], ports: [{ port: 80 }] }] },
  Event: {
    involvedObject: { kind: 'Pod', name: 'x', namespace: 'ns' },
    reason: 'Started',
    message: 'm',
    type: 'Normal',
  },
  Namespace: {},
  Node: {
    spec: { podCIDR: '10.128.0.0/23', podCIDRs: ['10.128.0.0/23'] },
    status: {
      capacity: { cpu: '4', memory: '8Gi' },
      addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
      conditions: [{ type: 'Ready', status: 'True' }],
      nodeInfo: {
        kubeletVersion: 'v1.36.0',
        osImage: 'Debian',
        kernelVersion: '6.1',
        containerRuntimeVersion: 'r://1',
      },
    },
  },
  Pod: { spec: podSpec },
  ReplicationController: { spec: { template: { metadata: { labels }, spec: podSpec } } },
  Secret: { stringData: { a: 'ä€' } },
  ServiceAccount: { secrets: [{ name: 's' }] },
  Service: { spec: { selector: labels, ports: [{ port: 80, targetPort: 'http' }] } },
  ControllerRevision: { data: { a: 1 }, revision: 1 },
  DaemonSet: { spec: workloadSpec },
  Deployment: { spec: workloadSpec },
  ReplicaSet: { spec: workloadSpec },
  CertificateSigningRequest: {
    spec: { request, signerName: 'example.com/signer', usages: ['client auth', 'digital signature'] },
  },
  Lease: { spec: { holderIdentity: 'me', leaseDurationSeconds: 15 } },
  EndpointSlice: { addressType: 'IPv4', endpoints: [{ addresses: ['10.1.2.3'] }], ports: [{ port: 80, name: 'http' }] },
  ClusterRoleBinding: {
    roleRef: { kind: 'ClusterRole', name: 'system:x' },
    subjects: [
      { kind: 'User', name: 'u' },
      { kind: 'ServiceAccount', name: 'sa', namespace: 'ns' },
    ],
  },
  ClusterRole: {
    rules: [
      { verbs: ['get'], apiGroups: [''], resources: ['pods'] },
      { verbs: ['get'], nonResourceURLs: ['/healthz'] },
    ],
  },
  RoleBinding: { roleRef: { kind: 'Role', name: 'r' }, subjects: [{ kind: 'Group', name: 'g' }] },
  Role: { rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] },
  PriorityClass: { value: 1000 },
  PodSecurityPolicy: {
    spec: {
      seLinux: { rule: 'RunAsAny' },
      runAsUser: { rule: 'MustRunAs', ranges: [{ min: 1, max: 100 }] },
      runAsGroup: { rule: 'MayRunAs', ranges: [{ min: 1, max: 100 }] },
      supplementalGroups: { rule: 'RunAsAny' },
      fsGroup: { rule: 'RunAsAny' },
      volumes: ['configMap', 'secret'],
      requiredDropCapabilities: ['KILL'],
      allowedCapabilities: ['NET_ADMIN'],
      allowedHostPaths: [{ pathPrefix: '/var', readOnly: true }],
      allowedFlexVolumes: [{ driver: 'd/x' }],
      allowedCSIDrivers: [{ name: 'csi.test' }],
      allowedUnsafeSysctls: ['net.core.*'],
      forbiddenSysctls: ['kernel.shm_rmid_forced'],
      runtimeClass: { allowedRuntimeClassNames: ['a'], defaultRuntimeClassName: 'a' },
    },
  },
  PodTemplate: { template: { metadata: { labels }, spec: podSpec } },
  LimitRange: {
    spec: { limits: [{ type: 'Container', max: { cpu: '2' }, min: { cpu: '100m', memory: '16Mi' } }] },
  },
  ResourceQuota: {
    spec: { hard: { pods: '10', 'requests.cpu': '4', 'limits.memory': '8Gi' }, scopes: ['NotTerminating'] },
  },
  ComponentStatus: { conditions: [{ type: 'Healthy', status: 'True', message: 'ok' }] },
  PersistentVolume: {
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'slow',
      claimRef: { namespace: 'ns', name: 'claim' },
      local: { path: '/mnt/disk' },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['n1'] }] },
          ],
        },
      },
    },
  },
  PersistentVolumeClaim: {
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: 'slow',
      dataSource: { kind: 'PersistentVolumeClaim', name: 'other' },
    },
  },
  StatefulSet: {
    spec: {
      ...workloadSpec,
      serviceName: 'web',
      volumeClaimTemplates: [
        {
          metadata: { name: 'www' },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
        },
      ],
    },
  },
  Job: { spec: { template: { metadata: { labels }, spec: { ...podSpec, restartPolicy: 'Never' } } } },
  CronJob: {
    spec: {
      schedule: '*/5 0-6 * jan,feb MON',
      timeZone: 'Europe/Berlin',
      jobTemplate: { spec: { template: { spec: { ...podSpec, restartPolicy: 'OnFailure' } } } },
    },
  },
  HorizontalPodAutoscaler: {
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
      maxReplicas: 5,
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
        { type: 'Pods', pods: { metric: { name: 'hits' }, target: { type: 'AverageValue', averageValue: '1k' } } },
        {
          type: 'External',
          external: {
            metric: { name: 'queue', selector: { matchLabels: { q: 'a' } } },
            target: { type: 'Value', value: '30' },
          },
        },
      ],
      behavior: { scaleDown: { stabilizationWindowSeconds: 60 } },
    },
  },
  PodDisruptionBudget: { spec: { minAvailable: '50%', selector: { matchLabels: labels } } },
  Ingress: {
    spec: {
      ingressClassName: 'edge',
      defaultBackend: { service: { name: 'web', port: { number: 80 } } },
      rules: [
        {
          host: '*.example.com',
          http: {
            paths: [
              { path: '/a', pathType: 'Prefix', backend: { service: { name: 'web', port: { name: 'http' } } } },
              { pathType: 'ImplementationSpecific', backend: { resource: { kind: 'Bucket', name: 'b' } } },
            ],
          },
        },
      ],
      tls: [{ hosts: ['www.example.com'], secretName: 'cert' }],
    },
  },
  IngressClass: { spec: { controller: 'example.com/edge', parameters: { kind: 'Settings', name: 'x' } } },
  NetworkPolicy: {
    spec: {
      podSelector: { matchLabels: labels },
      ingress: [
        { from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }], ports: [{ port: 80, endPort: 90 }] },
      ],
      egress: [{ to: [{ namespaceSelector: {} }] }],
    },
  },
  IPAddress: {
    metadata: { name: '10.0.0.7' },
    spec: { parentRef: { resource: 'services', namespace: 'ns', name: 'web' } },
  },
  ServiceCIDR: { spec: { cidrs: ['10.0.0.0/16', 'fd00::/108'] } },
  DeviceClass: {
    spec: {
      selectors: [{ cel: { expression: "device.driver == 'gpu.example.com'" } }],
      config: [{ opaque: { driver: 'gpu.example.com', parameters: { mode: 'shared' } } }],
      extendedResourceName: 'example.com/gpu',
    },
  },
  ResourceClaim: { spec: deviceClaim },
  ResourceClaimTemplate: { spec: { metadata: { labels }, spec: deviceClaim } },
  ResourceSlice: {
    spec: {
      driver: 'gpu.example.com',
      pool: { name: 'n1', generation: 1, resourceSliceCount: 1 },
      nodeName: 'n1',
      devices: [
        {
          name: 'gpu-0',
          attributes: { model: { string: 'a' }, 'example.com/version': { version: '1.2.3' } },
          capacity: { memory: { value: '16Gi' } },
          taints: [{ key: 'example.com/old', effect: 'NoSchedule' }],
        },
      ],
    },
  },
  DeviceTaintRule: {
    spec: {
      deviceSelector: { driver: 'gpu.example.com', pool: 'n1', device: 'gpu-0' },
      taint: { key: 'example.com/broken', value: 'yes', effect: 'NoExecute' },
    },
  },
  StorageVersionMigration: { spec: { resource: { group: 'apps', resource: 'deployments' } } },
  StorageClass: { provisioner: 'example.com/disk', parameters: { type: 'ssd' } },
  VolumeAttachment: { spec: { attacher: 'disk.example.com', nodeName: 'n1', source: { persistentVolumeName: 'pv' } } },
  CSINode: { spec: { drivers: [{ name: 'disk.example.com', nodeID: 'n1', topologyKeys: ['example.com/zone'] }] } },
  CSIDriver: { spec: { tokenRequests: [{ audience: 'a', expirationSeconds: 3600 }] } },
  VolumeAttributesClass: { driverName: 'disk.example.com', parameters: { iops: '1000' } },
  CSIStorageCapacity: { storageClassName: 'slow', capacity: '10Gi', nodeTopology: { matchLabels: { zone: 'a' } } },
  RuntimeClass: { handler: 'runc', overhead: { podFixed: { memory: '16Mi' } } },
  FlowSchema: {
    spec: {
      priorityLevelConfiguration: { name: 'workload' },
      distinguisherMethod: { type: 'ByUser' },
      rules: [
        {
          subjects: [{ kind: 'ServiceAccount', serviceAccount: { name: '*', namespace: 'ns' } }],
          resourceRules: [{ verbs: ['get'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'] }],
          nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['/healthz'] }],
        },
      ],
    },
  },
  PriorityLevelConfiguration: {
    spec: { type: 'Limited', limited: { limitResponse: { type: 'Queue', queuing: {} } } },
  },
  MutatingWebhookConfiguration: { webhooks: [webhook] },
  ValidatingWebhookConfiguration: { webhooks: [webhook] },
  ValidatingAdmissionPolicy: {
    spec: {
      matchConstraints: { resourceRules: [webhook.rules[0]] },
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      validations: [{ expression: 'object.spec.replicas < 5', message: 'too many' }],
    },
  },
  ValidatingAdmissionPolicyBinding: {
    spec: {
      policyName: 'x',
      validationActions: ['Deny'],
      paramRef: { name: 'p', namespace: 'ns' },
      matchResources: {},
    },
  },
  MutatingAdmissionPolicy: {
    spec: {
      matchConstraints: { resourceRules: [webhook.rules[0]] },
      reinvocationPolicy: 'Never',
      mutations: [
        {
          patchType: 'ApplyConfiguration',
          applyConfiguration: { expression: 'Object{spec: Object.spec{replicas: 3}}' },
        },
        { patchType: 'JSONPatch', jsonPatch: { expression: '[JSONPatch{op: "remove", path: "/spec/paused"}]' } },
      ],
    },
  },
  MutatingAdmissionPolicyBinding: { spec: { policyName: 'x', paramRef: { selector: {} }, matchResources: {} } },
  APIService: {
    metadata: { name: 'v1.lab.test' },
    spec: {
      group: 'lab.test',
      version: 'v1',
      groupPriorityMinimum: 1000,
      versionPriority: 15,
      service: { namespace: 'ns', name: 'rigs' },
      caBundle: 'aGVsbG8=',
    },
  },
  CustomResourceDefinition: {
    metadata: { name: 'rigs.lab.test' },
    spec: {
      group: 'lab.test',
      names: { kind: 'Rig', plural: 'rigs' },
      scope: 'Namespaced',
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  },
  Rig: {
    spec: {
      fixtures: [
        { name: 'board', fixture: 'board-1', role: 'serial' },
        { name: 'supply', fixture: 'relay-1', role: 'relay' },
      ],
      maxLease: '2h',
      console: { fixture: 'board' },
      power: { on: { fixture: 'supply', channel: 2 }, off: { command: 'psu-off' } },
    },
  },
  BareMetalHost: {
    spec: { online: true, bmc: { address: 'ssh://root@10.0.0.7:2222', credentialsName: 'rack-3' } },
  },
  HostOffer: {
    spec: {
      name: 'h9',
      machineID: '0123456789abcdef0123456789abcdef',
      signingKey: 'A'.repeat(43),
      sealingKey: 'B'.repeat(43),
      state: 'blank',
      hardware: { ramMebibytes: 4096, nics: [{ name: 'eth0', mac: '52:54:00:00:00:01' }] },
      signature: 'C'.repeat(86),
    },
  },
  RigClaim: { spec: { rigName: 'bench', duration: '30m' } },
};

export const storedKinds: readonly KindDefinition[] = builtinKinds.filter((kind) => kind.isComputed !== true);

/**
 * Name of the kind, with its group if the group is OpenShift's, because these names are not unique:
 * `Ingress.config.openshift.io`.
 */
export function sampleNameOf({ kind, group }: KindDefinition): string {
  return group.endsWith('.openshift.io') ? `${kind}.${group}` : kind;
}

export function kindNamed(name: string): KindDefinition {
  const kind = builtinKinds.find((each) => sampleNameOf(each) === name);
  if (kind === undefined) throw new Error(`no kind ${name}`);
  return kind;
}

/** A fresh document of the kind, after `change`. */
export function sample(name: string, change: (document: Document) => void = () => {}): Document {
  const kind = kindNamed(name);
  const content = CONTENTS[name] ?? OPENSHIFT_CONTENTS[name];
  if (content === undefined) throw new Error(`no sample of ${name}`);
  const document: Document = {
    apiVersion: kind.group === '' ? kind.version : `${kind.group}/${kind.version}`,
    kind: kind.kind,
    metadata: { name: 'x', ...(kind.namespaced ? { namespace: 'ns' } : {}) },
    ...structuredClone(content),
  };
  change(document);
  return document;
}

/** The sample with defaults, as strategies receive it. */
export function defaulted(name: string, change?: (document: Document) => void): Document {
  const document = sample(name, change);
  kindNamed(name).setDefaults?.(document);
  return document;
}

/** The sample as it is stored after creation. */
export function created(name: string, change?: (document: Document) => void): Document {
  const document = defaulted(name, change);
  kindNamed(name).strategy.prepareForCreate?.(document, context);
  return document;
}

export const context: StrategyContext = {
  nowMs: Date.parse('2026-01-02T03:04:05Z'),
  user: { name: 'alice', uid: 'u1', groups: ['g1'], extra: { scope: ['a'] } },
  newUid: () => '00000000-0000-4000-8000-000000000000',
  randomSuffix: (length) => 'x'.repeat(length),
};

/** `field: message` of each error. */
export function texts(errors: readonly { field: string; message: string }[] | undefined): string[] {
  return (errors ?? []).map((error) => `${error.field}: ${error.message}`);
}

export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const each of Object.values(value)) deepFreeze(each);
  }
  return value;
}

/** The object at a path, which must exist. */
export function at(document: unknown, ...path: (string | number)[]): Record<string, unknown> {
  let current = document;
  for (const step of path) current = (current as Record<string | number, unknown>)[step];
  if (typeof current !== 'object' || current === null) throw new Error(`nothing at ${path.join('.')}`);
  return current as Record<string, unknown>;
}
