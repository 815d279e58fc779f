/** Calls of `describe` about kinds that the other scenarios do not describe. */
import type { Scenario } from './calls.ts';

/** Request with two DNS names, an address, an e-mail address and a URI. */
const REQUEST =
  'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQlNqQ0I4UUlCQURBZU1RMHdDd1lEVlFRS0RBUjBaV0Z0TVEwd0N3WURWUV' +
  'FEREFScVlXNWxNRmt3RXdZSApLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFYWdZRkNKbDcrZkVRSzRWcjFJL3BhOGhJUmFNajlQRFh0R0ZE' +
  'CnRaOUx6UUNUeVU3d0FCbE40LzRyVGtSVkpUK3NidkFJRW1scnE1ckZVYTNQMG1LN3BhQnhNRzhHQ1NxR1NJYjMKRFFFSkRqRmlNR0F3WGdZRF' +
  'ZSMFJCRmN3VllJUGQyVmlMbVY0WVcxd2JHVXVZMjl0Z2c5aGNHa3VaWGhoYlhCcwpaUzVqYjIySEJNQUFBZ2VCRUdwaGJtVkFaWGhoYlhCc1pT' +
  'NWpiMjJHR1hOd2FXWm1aVG92TDJWNFlXMXdiR1V1ClkyOXRMMnBoYm1Vd0NnWUlLb1pJemowRUF3SURTQUF3UlFJZ1pFV0RVU2VsRjQxakd3L1' +
  'RqZW9oWmpqTGRqQmsKdWh4OXFNMENYZW1NdTNJQ0lRQzBRUVhxRVZaZjlOa2srSXhlVlFhTGZBTk0vRmFPSkZweGw1Z0doakN3cUE9PQotLS0t' +
  'LUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K';

export const DESCRIBE_SCENARIO: Scenario = {
  name: 'describe',
  manifests: {
    workloads: `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: demo, labels: {app: report}, annotations: {note: hello}}
spec:
  schedule: 0 3 * * *
  timeZone: Etc/UTC
  suspend: true
  startingDeadlineSeconds: 60
  failedJobsHistoryLimit: 2
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      parallelism: 2
      completions: 4
      activeDeadlineSeconds: 90
      template:
        spec:
          restartPolicy: Never
          serviceAccountName: robot
          containers: [{name: c, image: registry.example/job:1, args: [a, "b\\nc"]}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: plain, namespace: demo}
spec:
  schedule: "@hourly"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: registry.example/job:1}]}}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: indexed, namespace: demo}
spec:
  completionMode: Indexed
  completions: 3
  suspend: true
  ttlSecondsAfterFinished: 60
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: registry.example/job:1}]}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: old, namespace: demo, labels: {app: old}}
spec:
  replicas: 2
  selector: {app: old}
  template: {metadata: {labels: {app: old}}, spec: {containers: [{name: c, image: registry.example/old:1}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: demo}
spec:
  serviceName: db
  replicas: 2
  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}
  selector: {matchExpressions: [{key: app, operator: In, values: [db, base]}, {key: old, operator: DoesNotExist}], matchLabels: {app-a: x}}
  template:
    metadata: {labels: {app: db, app-a: x}, annotations: {why: because}}
    spec:
      nodeSelector: {disk: ssd}
      tolerations: [{operator: Exists}, {key: a, value: b, effect: NoExecute, tolerationSeconds: 5}]
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [{key: app, operator: Exists}]}}
      - {maxSkew: 2, topologyKey: host, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: db}}}
      containers:
      - name: c
        image: registry.example/db:1
        volumeMounts: [{name: data, mountPath: /data}, {name: csi, mountPath: /csi, subPath: a}]
      volumes:
      - {name: csi, csi: {driver: secrets.example, volumeAttributes: {b: x, a: one}}}
      - {name: plain, csi: {driver: secrets.example, readOnly: true}}
      - {name: disk, iscsi: {targetPortal: "192.0.2.1:3260", iqn: "iqn.2001-04.com.example:x", lun: 1}}
      - {name: fibre, fc: {targetWWNs: ["500a0982991b8dc5"], lun: 2}}
      - {name: info, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
      - {name: host, hostPath: {path: /srv}}
      - {name: scratch, ephemeral: {volumeClaimTemplate: {metadata: {labels: {a: b}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}
  volumeClaimTemplates:
  - metadata: {name: data, labels: {a: b}, annotations: {c: d}}
    spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: demo, annotations: {note: hello}}
spec:
  minReplicas: 2
  maxReplicas: 9
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}
  - {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 100Mi}}}
  - {type: ContainerResource, containerResource: {name: cpu, container: main, target: {type: Utilization, averageUtilization: 60}}}
  - {type: Pods, pods: {metric: {name: packets}, target: {type: AverageValue, averageValue: 1k}}}
  - {type: Object, object: {metric: {name: requests}, describedObject: {apiVersion: networking.k8s.io/v1, kind: Ingress, name: web}, target: {type: Value, value: 2k}}}
  - {type: External, external: {metric: {name: queue}, target: {type: AverageValue, averageValue: "30"}}}
  behavior:
    scaleDown: {stabilizationWindowSeconds: 60, policies: [{type: Percent, value: 10, periodSeconds: 60}, {type: Pods, value: 4, periodSeconds: 60}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: demo}
spec: {minAvailable: 50%, selector: {matchLabels: {app: web}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db, namespace: demo}
spec: {maxUnavailable: 1, selector: {matchExpressions: [{key: app, operator: NotIn, values: [a, b]}]}}
`,
    network: `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: demo}
spec: {clusterIP: None, selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: demo, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
- {addresses: [192.0.2.1], conditions: {ready: true}, nodeName: node-a, zone: z, targetRef: {kind: Pod, name: web-a, namespace: demo}}
- {addresses: [192.0.2.2], conditions: {ready: true}, hostname: two}
- {addresses: [192.0.2.3]}
- {addresses: [192.0.2.4], conditions: {ready: false}}
- {addresses: [192.0.2.5], conditions: {ready: true}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: none, namespace: demo}
addressType: IPv6
endpoints: []
---
apiVersion: v1
kind: Endpoints
metadata: {name: manual, namespace: demo}
subsets:
- {addresses: [{ip: 192.0.2.1}, {ip: 192.0.2.2}], notReadyAddresses: [{ip: 192.0.2.3}], ports: [{name: web, port: 80}, {name: tls, port: 443, protocol: TCP}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: demo, labels: {app: web}, annotations: {note: hello}}
spec:
  ingressClassName: inner
  defaultBackend: {service: {name: absent, port: {number: 80}}}
  tls: [{hosts: [a.example, b.example], secretName: cert}, {hosts: [c.example]}]
  rules:
  - host: a.example
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
      - {path: /named, pathType: Exact, backend: {service: {name: web, port: {name: http}}}}
      - {path: /static, pathType: Exact, backend: {resource: {apiGroup: example.com, kind: Bucket, name: files}}}
  - http: {paths: [{path: /all, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: only-default, namespace: demo}
spec: {defaultBackend: {service: {name: web, port: {name: http}}}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: inner}
spec: {controller: example.com/inner, parameters: {apiGroup: example.com, kind: Settings, name: one}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: all, namespace: demo}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress, Egress]
  ingress:
  - from:
    - {podSelector: {matchLabels: {role: front}}, namespaceSelector: {matchLabels: {team: blue}}}
    - {ipBlock: {cidr: 192.0.2.0/24, except: [192.0.2.1/32, 192.0.2.2/32]}}
    ports: [{port: 80}, {protocol: UDP, port: 53, endPort: 60}, {port: http}]
  - {}
  egress:
  - {to: [{namespaceSelector: {}}, {podSelector: {}}], ports: [{protocol: TCP}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: demo}
spec: {podSelector: {}, policyTypes: [Ingress]}
`,
    storage: `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: csi.example
parameters: {type: ssd, area: a}
allowVolumeExpansion: true
mountOptions: [noatime, discard]
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [a, b]}, {key: rack, values: [r]}]}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: slow}
provisioner: csi.example
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-csi, labels: {disk: one}}
spec:
  capacity: {storage: 5Gi}
  accessModes: [ReadWriteMany, ReadWriteOnce]
  storageClassName: fast
  persistentVolumeReclaimPolicy: Delete
  claimRef: {namespace: demo, name: data}
  csi: {driver: csi.example, volumeHandle: h-1, fsType: ext4, volumeAttributes: {b: x, a: one}}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - {matchExpressions: [{key: zone, operator: In, values: [a, b]}, {key: gone, operator: DoesNotExist}]}
      - {matchExpressions: [{key: rack, operator: Exists}]}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-local}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOncePod]
  volumeMode: Block
  local: {path: /dev/sdb}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-a]}]}]}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-nfs}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadOnlyMany], nfs: {server: nfs.example, path: /x, readOnly: true}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-iscsi}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], iscsi: {targetPortal: "192.0.2.1:3260", iqn: "iqn.2001-04.com.example:x", lun: 0, chapAuthSession: true, secretRef: {name: chap, namespace: demo}, portals: ["192.0.2.2:3260"]}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-host}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /srv/x, type: Directory}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: demo, labels: {a: b}}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: fast
  resources: {requests: {storage: 1Gi}}
  dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: snap}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: bound, namespace: demo}
spec: {accessModes: [ReadWriteOnce], volumeName: pv-nfs, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: user, namespace: demo}
spec:
  containers: [{name: c, image: registry.example/x:1}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: node-a}
spec: {drivers: [{name: csi.example, nodeID: node-a, topologyKeys: [zone, rack], allocatable: {count: 7}}, {name: other.example, nodeID: other, topologyKeys: null}]}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: node-b}
spec: {drivers: []}
`,
    policy: `
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: demo}
spec:
  limits:
  - {type: Container, max: {cpu: "2"}, min: {cpu: 100m}, default: {cpu: 500m}, defaultRequest: {cpu: 200m}, maxLimitRequestRatio: {cpu: "10"}}
  - {type: Pod, max: {memory: 1Gi}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: compute, namespace: demo}
spec: {hard: {pods: "10", requests.cpu: "2", limits.memory: 2Gi}, scopes: [NotTerminating, NotBestEffort]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: all, namespace: demo}
spec: {hard: {configmaps: "5"}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high, annotations: {note: hello}}
value: 1000
description: For the important ones.
preemptionPolicy: Never
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: demo}
imagePullSecrets: [{name: one}, {name: two}]
`,
    access: `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: demo, labels: {a: b}}
rules:
- {apiGroups: [""], resources: [pods, pods/log], verbs: [get, list]}
- {apiGroups: [""], resources: [pods], verbs: [watch, get]}
- {apiGroups: [apps, extensions], resources: [deployments/scale], verbs: ["*"], resourceNames: [web, api]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: seer}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: [get]}
- {nonResourceURLs: [/healthz, /metrics], verbs: [get, head]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: demo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {kind: ServiceAccount, name: robot, namespace: demo}
- {kind: User, name: jane, apiGroup: rbac.authorization.k8s.io}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: seers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: seer}
---
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: jane, labels: {a: b}}
spec: {signerName: example.com/people, expirationSeconds: 7200, usages: [client auth], request: ${REQUEST}}
`,
  },
  files: {},
  calls: `
create ns demo
create ns empty
create sa default -n demo
apply -f - < access
apply -f - < storage
apply -f - < network
apply -f - < workloads
apply -f - < policy
patch pdb web -n demo --subresource=status --type=merge -p {"status":{"currentHealthy":2,"desiredHealthy":1,"expectedPods":3,"disruptionsAllowed":1}}
patch job indexed -n demo --subresource=status --type=merge -p {"status":{"completedIndexes":"0,2","succeeded":2}}
patch cronjob nightly -n demo --subresource=status --type=merge -p {"status":{"lastScheduleTime":"2026-01-02T03:04:05Z","active":[{"name":"one"},{"name":"two"}]}}
patch hpa web -n demo --subresource=status --type=merge -p {"status":{"currentReplicas":2,"desiredReplicas":3,"currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":50,"averageValue":"100m"}}},{"type":"Resource","resource":{"name":"memory","current":{"averageValue":"50Mi"}}}],"conditions":[{"type":"AbleToScale","status":"True","reason":"ReadyForNewScale","message":"recommended"}]}}
patch quota compute -n demo --subresource=status --type=merge -p {"status":{"hard":{"pods":"10","requests.cpu":"2"},"used":{"pods":"3","requests.cpu":"1500m"}}}
patch ingress web -n demo --subresource=status --type=merge -p {"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.9"},{"hostname":"lb.example"}]}}}
patch pvc bound -n demo --subresource=status --type=merge -p {"status":{"phase":"Bound","capacity":{"storage":"2Gi"},"accessModes":["ReadOnlyMany","ReadWriteOnce"],"conditions":[{"type":"Resizing","status":"True","reason":"r","message":"m"}]}}
describe cronjob nightly -n demo
describe cj plain -n demo
describe job indexed -n demo
describe rc old -n demo
describe sts db -n demo
describe hpa web -n demo
describe pdb -n demo
describe ing web -n demo
describe ing only-default -n demo
describe ingressclass inner
describe netpol all -n demo
describe netpol deny -n demo
describe endpointslice web-1 -n demo
describe endpointslice none -n demo
describe endpoints manual -n demo
describe svc web -n demo
describe sc fast
describe sc slow
describe pv pv-csi
describe pv pv-local
describe pv pv-nfs
describe pv pv-iscsi
describe pv pv-host
describe pvc data -n demo
describe pvc bound -n demo
describe csinode node-a
describe csinode node-b
describe limits limits -n demo
describe quota compute -n demo
describe quota all -n demo
describe ns demo
describe ns empty
describe priorityclass high
describe sa robot -n demo
describe role reader -n demo
describe clusterrole seer
describe clusterrole system:kube-scheduler
describe rolebinding readers -n demo
describe clusterrolebinding seers
describe csr jane
certificate approve jane
describe csr jane
describe role,rolebinding -n demo
describe quota,limits -n empty
describe sc fast missing slow
describe sc/missing
describe sc missing other
describe sc fast slow --show-events=false
describe sc sl
describe sc slow --show-events=true
auth can-i --list -n demo
auth can-i --list -n demo --no-headers
auth can-i --list -n demo --as=system:serviceaccount:demo:robot
`,
};
