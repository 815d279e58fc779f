import type { ClusterRole, PolicyRule } from '../../../../api/generated/rbac/v1.ts';
import { NODE_RULES } from './node-rules.ts';
import { aggregatedRole, aggregateTo, clusterRole, eventsRule, READ, rule, urlRule, WRITE } from './notation.ts';

const SIGNERS = 'certificates.k8s.io';
const SCALABLE = 'deployments deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale';

/** Roles for users: cluster-admin, admin of a namespace, edit and view. */
const userFacing: readonly ClusterRole[] = [
  clusterRole('cluster-admin', [rule('*', '*', '*'), urlRule('*', '*')]),
  aggregatedRole('admin'),
  aggregatedRole('edit', aggregateTo('admin')),
  aggregatedRole('view', aggregateTo('edit')),
  clusterRole(
    'system:aggregate-to-admin',
    [
      rule('create', 'authorization.k8s.io', 'localsubjectaccessreviews'),
      rule(`${READ} ${WRITE}`, 'rbac.authorization.k8s.io', 'rolebindings roles'),
    ],
    aggregateTo('admin'),
  ),
  clusterRole(
    'system:aggregate-to-edit',
    [
      rule(READ, 'core', 'pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy'),
      rule('impersonate', 'core', 'serviceaccounts'),
      rule(WRITE, 'core', 'pods pods/attach pods/exec pods/portforward pods/proxy'),
      rule('create', 'core', 'pods/eviction serviceaccounts/token'),
      rule(
        WRITE,
        'core',
        'configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy',
      ),
      rule(WRITE, 'apps', `daemonsets deployments/rollback ${SCALABLE}`),
      rule(WRITE, 'autoscaling', 'horizontalpodautoscalers'),
      rule(WRITE, 'batch', 'cronjobs jobs'),
      rule(WRITE, 'policy', 'poddisruptionbudgets'),
      rule(WRITE, 'networking.k8s.io', 'ingresses networkpolicies'),
      rule(WRITE, 'extensions', 'ingresses'),
      rule(WRITE, 'resource.k8s.io', 'resourceclaims resourceclaimtemplates'),
      rule(WRITE, 'rig.hyperedge.dev', 'rigclaims'),
      rule('create', 'rig.hyperedge.dev', 'rigclaims/console rigclaims/power'),
      rule(`${READ} ${WRITE}`, 'coordination.k8s.io', 'leases'),
    ],
    aggregateTo('edit'),
  ),
  clusterRole(
    'system:aggregate-to-view',
    [
      rule(
        READ,
        'core',
        'configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status',
      ),
      rule(
        READ,
        'core',
        'bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas resourcequotas/status',
      ),
      rule(READ, 'core', 'namespaces'),
      rule(READ, 'discovery.k8s.io', 'endpointslices'),
      rule(
        READ,
        'apps',
        `controllerrevisions daemonsets daemonsets/status deployments/status replicasets/status statefulsets/status ${SCALABLE}`,
      ),
      rule(READ, 'autoscaling', 'horizontalpodautoscalers horizontalpodautoscalers/status'),
      rule(READ, 'batch', 'cronjobs cronjobs/status jobs jobs/status'),
      rule(READ, 'policy', 'poddisruptionbudgets poddisruptionbudgets/status'),
      rule(READ, 'networking.k8s.io', 'ingresses ingresses/status networkpolicies'),
      rule(READ, 'resource.k8s.io', 'resourceclaims resourceclaims/status resourceclaimtemplates'),
      rule(READ, 'rig.hyperedge.dev', 'rigclaims rigclaims/status'),
      // The older API group of ingresses, which this server still serves.
      rule(READ, 'extensions', 'ingresses ingresses/status'),
    ],
    aggregateTo('view'),
  ),
  // Name used in metrics-server's manifests.
  clusterRole('system:aggregated-metrics-reader', [rule(READ, 'metrics.k8s.io', 'nodes pods')], aggregateTo('view')),
];

/** Roles of all users, and roles for add-ons. */
const general: readonly ClusterRole[] = [
  clusterRole('system:basic-user', [
    rule('create', 'authorization.k8s.io', 'selfsubjectaccessreviews selfsubjectrulesreviews'),
    rule('create', 'authentication.k8s.io', 'selfsubjectreviews'),
  ]),
  clusterRole('system:discovery', [
    urlRule('get', '/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/'),
  ]),
  clusterRole('system:public-info-viewer', [urlRule('get', '/healthz /livez /readyz /version /version/')]),
  clusterRole('system:monitoring', [
    urlRule('get', '/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*'),
    urlRule('get', '/flagz'),
    urlRule('get', '/statusz'),
  ]),
  clusterRole('system:service-account-issuer-discovery', [
    urlRule(
      'get',
      '/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/',
    ),
  ]),
  clusterRole('system:auth-delegator', [
    rule('create', 'authentication.k8s.io', 'tokenreviews'),
    rule('create', 'authorization.k8s.io', 'subjectaccessreviews'),
  ]),
  clusterRole('system:heapster', [
    rule(READ, 'core', 'events namespaces nodes pods'),
    rule(READ, 'extensions', 'deployments'),
  ]),
  clusterRole('system:kube-aggregator', [rule(READ, 'core', 'endpoints services')]),
  clusterRole('system:kube-dns', [
    rule('list watch', 'core', 'endpoints services'),
    rule('list watch', 'discovery.k8s.io', 'endpointslices'),
  ]),
  clusterRole('system:persistent-volume-provisioner', [
    rule('create delete get list watch', 'core', 'persistentvolumes'),
    rule('get list update watch', 'core', 'persistentvolumeclaims'),
    rule(READ, 'storage.k8s.io', 'storageclasses'),
    rule('watch', 'core', 'events'),
    eventsRule,
  ]),
];

const nodes: readonly ClusterRole[] = [
  clusterRole('system:node', NODE_RULES),
  clusterRole('system:node-name-reader', [rule('get list', 'core', 'nodes')]),
  clusterRole('system:node-bootstrapper', [rule('create get list watch', SIGNERS, 'certificatesigningrequests')]),
  clusterRole('system:node-proxier', [
    rule('list watch', 'core', 'endpoints services'),
    rule(READ, 'core', 'nodes'),
    rule('list watch', 'discovery.k8s.io', 'endpointslices'),
    rule('list watch', 'networking.k8s.io', 'servicecidrs'),
    eventsRule,
  ]),
  // OKD's role for the objects that its network plug-in reads on each node.
  clusterRole('system:sdn-reader', [
    rule('list watch', 'core', 'namespaces pods'),
    rule('list watch', 'networking.k8s.io', 'networkpolicies'),
  ]),
  clusterRole('system:node-problem-detector', [
    rule('get', 'core', 'nodes'),
    rule('patch', 'core', 'nodes/status'),
    eventsRule,
  ]),
  clusterRole('system:kubelet-api-admin', [
    rule(READ, 'core', 'nodes'),
    rule('proxy', 'core', 'nodes'),
    rule(
      '*',
      'core',
      'nodes/checkpoint nodes/configz nodes/healthz nodes/log nodes/metrics nodes/pods nodes/proxy nodes/spec nodes/stats',
    ),
  ]),
];

const certificates: readonly ClusterRole[] = [
  clusterRole('system:expired-node', [rule('create get', SIGNERS, 'certificatesigningrequests')]),
  clusterRole('system:certificates.k8s.io:certificatesigningrequests:nodeclient', [
    rule('create', SIGNERS, 'certificatesigningrequests/nodeclient'),
  ]),
  clusterRole('system:certificates.k8s.io:certificatesigningrequests:selfnodeclient', [
    rule('create', SIGNERS, 'certificatesigningrequests/selfnodeclient'),
  ]),
  ...['kube-apiserver-client', 'kube-apiserver-client-kubelet', 'kubelet-serving', 'legacy-unknown'].map((signer) =>
    clusterRole(`system:certificates.k8s.io:${signer}-approver`, [
      rule('approve', SIGNERS, 'signers', `kubernetes.io/${signer}`),
    ]),
  ),
];

/** Permissions for a leader election lock in an Endpoints object, which components before Kubernetes 1.24 can use. */
const endpointsLock = (name: string): PolicyRule[] => [
  rule('create', 'core', 'endpoints'),
  rule('get update', 'core', 'endpoints', name),
];

const controlPlane: readonly ClusterRole[] = [
  clusterRole('system:kube-controller-manager', [
    eventsRule,
    rule('create', 'coordination.k8s.io', 'leases'),
    rule('get update', 'coordination.k8s.io', 'leases', 'kube-controller-manager'),
    ...endpointsLock('kube-controller-manager'),
    rule('create update', 'core', 'secrets serviceaccounts'),
    rule('delete', 'core', 'secrets'),
    rule('get', 'core', 'configmaps namespaces secrets serviceaccounts'),
    rule('create', 'authentication.k8s.io', 'tokenreviews'),
    rule('create', 'authorization.k8s.io', 'subjectaccessreviews'),
    rule('list watch', '*', '*'),
    rule('create', 'core', 'serviceaccounts/token'),
  ]),
  clusterRole('system:kube-scheduler', [
    eventsRule,
    rule('create', 'coordination.k8s.io', 'leases'),
    rule('get list update watch', 'coordination.k8s.io', 'leases', 'kube-scheduler'),
    ...endpointsLock('kube-scheduler'),
    rule(READ, 'core', 'namespaces nodes replicationcontrollers services'),
    rule('delete get list watch', 'core', 'pods'),
    rule('create', 'core', 'bindings pods/binding'),
    rule('patch update', 'core', 'pods/status'),
    rule(READ, 'apps', 'replicasets statefulsets'),
    rule(READ, 'policy', 'poddisruptionbudgets'),
    rule(READ, 'scheduling.k8s.io', 'priorityclasses'),
    rule(READ, 'core', 'persistentvolumeclaims persistentvolumes'),
    rule('create', 'authentication.k8s.io', 'tokenreviews'),
    rule('create', 'authorization.k8s.io', 'subjectaccessreviews'),
    rule(READ, 'storage.k8s.io', 'csidrivers csinodes csistoragecapacities volumeattachments'),
    rule(`${READ} patch update`, 'core', 'pods/finalizers'),
    rule(READ, 'resource.k8s.io', 'deviceclasses devicetaintrules resourceslices'),
    rule(`${READ} patch update`, 'resource.k8s.io', 'resourceclaims resourceclaims/status'),
    rule('create delete', 'resource.k8s.io', 'resourceclaims'),
    rule('patch update', 'resource.k8s.io', 'resourceclaims/binding'),
    rule(READ, 'rig.hyperedge.dev', 'rigs'),
  ]),
  clusterRole('system:volume-scheduler', [
    rule('get list patch update watch', 'core', 'persistentvolumeclaims persistentvolumes'),
    rule(READ, 'storage.k8s.io', 'storageclasses'),
  ]),
];

export const CLUSTER_ROLES: readonly ClusterRole[] = [
  ...userFacing,
  ...general,
  ...nodes,
  ...certificates,
  ...controlPlane,
];
