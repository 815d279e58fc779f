/**
 * OpenShift's default roles. Source: openshift/openshift-apiserver pkg/bootstrappolicy, without kinds that this server
 * does not serve (builds, deployment configurations).
 */
import type { ClusterRole, ClusterRoleBinding } from '../../../../api/generated/rbac/v1.ts';
import {
  aggregatedRole,
  aggregateTo,
  clusterRole,
  clusterRoleBinding,
  group,
  READ,
  rule,
  urlRule,
  user,
  WRITE,
} from './notation.ts';

const AUTHORIZATION = 'authorization.openshift.io';
const IMAGE = 'image.openshift.io';
const PROJECT = 'project.openshift.io';
const QUOTA = 'quota.openshift.io';
const ROUTE = 'route.openshift.io';
const SECURITY = 'security.openshift.io';
const TEMPLATE = 'template.openshift.io';
const USER = 'user.openshift.io';
const OAUTH = 'oauth.openshift.io';
const BOTH = `${READ} ${WRITE}`;

const STREAMS = 'imagestreamimages imagestreammappings imagestreams imagestreams/secrets imagestreamtags imagetags';
const SEEN_STREAMS = 'imagestreamimages imagestreammappings imagestreams imagestreamtags imagetags';
const TEMPLATES = 'processedtemplates templateconfigs templateinstances templates';
const LOCAL_REVIEWS = 'localresourceaccessreviews localsubjectaccessreviews subjectrulesreviews';
const POD_REVIEWS = 'podsecuritypolicyreviews podsecuritypolicyselfsubjectreviews podsecuritypolicysubjectreviews';
const DISCOVERY = urlRule(
  'get',
  '/ /.well-known /.well-known/oauth-authorization-server /api /api/* /apis /apis/* /openapi/v2 /openapi/v3 /openapi/v3/* /version /version/',
);

const BASIC_USER = { 'authorization.openshift.io/aggregate-to-basic-user': 'true' };
const STORAGE_ADMIN = { 'storage.openshift.io/aggregate-to-storage-admin': 'true' };

/** Groups of a rule: the API group, and the core group, which access reviews of `oc` still use. */
const legacy = (apiGroup: string): string => `core ${apiGroup}`;

/** Rules of admin, edit and view in addition to Kubernetes' own rules. */
const aggregated: readonly ClusterRole[] = [
  clusterRole(
    'system:openshift:aggregate-to-admin',
    [
      rule(BOTH, legacy(AUTHORIZATION), 'rolebindings roles'),
      rule('create', legacy(AUTHORIZATION), `${LOCAL_REVIEWS} resourceaccessreviews subjectaccessreviews`),
      rule(READ, legacy(AUTHORIZATION), 'rolebindingrestrictions'),
      rule('create', legacy(SECURITY), POD_REVIEWS),
      rule(BOTH, legacy(IMAGE), STREAMS),
      rule(READ, legacy(IMAGE), 'imagestreams/status'),
      rule('get update', legacy(IMAGE), 'imagestreams/layers'),
      rule('create', legacy(IMAGE), 'imagestreamimports'),
      rule('delete get patch update', legacy(PROJECT), 'projects'),
      rule(READ, legacy(QUOTA), 'appliedclusterresourcequotas'),
      rule(BOTH, legacy(ROUTE), 'routes'),
      rule('create', legacy(ROUTE), 'routes/custom-host'),
      rule(`${READ} update`, legacy(ROUTE), 'routes/status'),
      rule(BOTH, legacy(TEMPLATE), TEMPLATES),
    ],
    aggregateTo('admin'),
  ),
  clusterRole(
    'system:openshift:aggregate-to-edit',
    [
      rule(BOTH, legacy(IMAGE), STREAMS),
      rule(READ, legacy(IMAGE), 'imagestreams/status'),
      rule('get update', legacy(IMAGE), 'imagestreams/layers'),
      rule('create', legacy(IMAGE), 'imagestreamimports'),
      rule('get', legacy(PROJECT), 'projects'),
      rule(READ, legacy(QUOTA), 'appliedclusterresourcequotas'),
      rule(BOTH, legacy(ROUTE), 'routes'),
      rule('create', legacy(ROUTE), 'routes/custom-host'),
      rule(READ, legacy(ROUTE), 'routes/status'),
      rule(BOTH, legacy(TEMPLATE), TEMPLATES),
    ],
    aggregateTo('edit'),
  ),
  clusterRole(
    'system:openshift:aggregate-to-view',
    [
      rule(READ, legacy(IMAGE), SEEN_STREAMS),
      rule(READ, legacy(IMAGE), 'imagestreams/status'),
      rule('get', legacy(PROJECT), 'projects'),
      rule(READ, legacy(QUOTA), 'appliedclusterresourcequotas'),
      rule(READ, legacy(ROUTE), 'routes routes/status'),
      rule(READ, legacy(TEMPLATE), TEMPLATES),
    ],
    aggregateTo('view'),
  ),
  {
    ...aggregatedRole('cluster-reader'),
    aggregationRule: {
      clusterRoleSelectors: [{ matchLabels: aggregateTo('cluster-reader') }, { matchLabels: aggregateTo('view') }],
    },
  },
  clusterRole(
    'system:openshift:aggregate-to-cluster-reader',
    [
      rule(
        READ,
        'core',
        'componentstatuses nodes nodes/status persistentvolumes persistentvolumes/status podtemplates securitycontextconstraints',
      ),
      rule(READ, 'admissionregistration.k8s.io', 'mutatingwebhookconfigurations validatingwebhookconfigurations'),
      rule(READ, 'apiextensions.k8s.io', 'customresourcedefinitions customresourcedefinitions/status'),
      rule(READ, 'apiregistration.k8s.io', 'apiservices apiservices/status'),
      rule(READ, 'coordination.k8s.io', 'leases'),
      rule(READ, 'events.k8s.io', 'events'),
      rule(READ, 'node.k8s.io', 'runtimeclasses'),
      rule(READ, 'rbac.authorization.k8s.io', 'clusterrolebindings clusterroles rolebindings roles'),
      rule(READ, 'scheduling.k8s.io', 'priorityclasses'),
      rule(READ, 'storage.k8s.io', 'csidrivers csinodes storageclasses volumeattachments volumeattachments/status'),
      rule(
        READ,
        'certificates.k8s.io',
        'certificatesigningrequests certificatesigningrequests/approval certificatesigningrequests/status',
      ),
      rule(READ, AUTHORIZATION, 'clusterrolebindings clusterroles rolebindingrestrictions rolebindings roles'),
      rule(READ, 'config.openshift.io', '*'),
      rule(READ, IMAGE, 'images imagesignatures'),
      rule('get', IMAGE, 'imagestreams/layers'),
      rule(READ, OAUTH, 'oauthclientauthorizations'),
      rule(READ, PROJECT, 'projectrequests projects'),
      rule(READ, QUOTA, 'clusterresourcequotas clusterresourcequotas/status'),
      rule(READ, SECURITY, 'rangeallocations securitycontextconstraints'),
      rule(READ, TEMPLATE, 'brokertemplateinstances templateinstances/status'),
      rule(READ, USER, 'groups identities useridentitymappings users'),
      rule(
        'create',
        AUTHORIZATION,
        `${LOCAL_REVIEWS} resourceaccessreviews selfsubjectrulesreviews subjectaccessreviews`,
      ),
      rule(
        'create',
        'authorization.k8s.io',
        'localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews subjectaccessreviews',
      ),
      rule('create', 'authentication.k8s.io', 'tokenreviews'),
      rule('create', SECURITY, POD_REVIEWS),
      rule('get', 'core', 'nodes/metrics nodes/spec'),
      rule('create get', 'core', 'nodes/stats'),
      urlRule('get', '*'),
    ],
    aggregateTo('cluster-reader'),
  ),
  {
    ...aggregatedRole('basic-user'),
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: BASIC_USER }] },
  },
  clusterRole(
    'system:openshift:aggregate-to-basic-user',
    [
      rule('get', legacy(USER), 'users', '~'),
      rule('list', legacy(PROJECT), 'projectrequests'),
      rule('get list', legacy(AUTHORIZATION), 'clusterroles'),
      rule(READ, 'rbac.authorization.k8s.io', 'clusterroles'),
      rule('get list', 'storage.k8s.io', 'storageclasses'),
      rule('list watch', legacy(PROJECT), 'projects'),
      rule('create', legacy(AUTHORIZATION), 'selfsubjectrulesreviews'),
      rule('create', 'authorization.k8s.io', 'selfsubjectaccessreviews'),
    ],
    BASIC_USER,
  ),
  {
    ...aggregatedRole('storage-admin'),
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: STORAGE_ADMIN }] },
  },
  clusterRole(
    'system:openshift:aggregate-to-storage-admin',
    [
      rule(BOTH, 'core', 'persistentvolumes'),
      rule(BOTH, 'storage.k8s.io', 'storageclasses'),
      rule(READ, 'core', 'events persistentvolumeclaims pods'),
    ],
    STORAGE_ADMIN,
  ),
];

export const OPENSHIFT_CLUSTER_ROLES: readonly ClusterRole[] = [
  ...aggregated,
  clusterRole('sudoer', [
    rule('impersonate', `core ${USER}`, 'systemusers users', 'system:admin'),
    rule('impersonate', `core ${USER}`, 'groups systemgroups', 'system:masters'),
  ]),
  clusterRole('system:scope-impersonation', [
    rule('impersonate', 'authentication.k8s.io', 'userextras/scopes.authorization.openshift.io'),
  ]),
  clusterRole('cluster-debugger', [urlRule('get', '/debug/pprof /debug/pprof/* /metrics')]),
  clusterRole('self-access-reviewer', [
    rule('create', AUTHORIZATION, 'selfsubjectrulesreviews'),
    rule('create', 'authorization.k8s.io', 'selfsubjectaccessreviews'),
  ]),
  clusterRole('self-provisioner', [rule('create', legacy(PROJECT), 'projectrequests')]),
  clusterRole('cluster-status', [urlRule('get', '/healthz /healthz/'), DISCOVERY]),
  clusterRole('system:openshift:discovery', [DISCOVERY]),
  clusterRole('system:image-auditor', [rule(`${READ} patch update`, IMAGE, 'images')]),
  clusterRole('system:image-pusher', [rule('get update', IMAGE, 'imagestreams/layers')]),
  clusterRole(
    'system:image-builder',
    [rule('get update', IMAGE, 'imagestreams/layers'), rule('create', IMAGE, 'imagestreams')],
    { ...aggregateTo('admin'), ...aggregateTo('edit') },
  ),
  clusterRole('system:oauth-token-deleter', [rule('delete', OAUTH, 'oauthaccesstokens oauthauthorizetokens')]),
  clusterRole('system:node-admin', [
    rule(READ, 'core', 'nodes'),
    rule('proxy', 'core', 'nodes'),
    rule('*', 'core', 'nodes/log nodes/metrics nodes/proxy nodes/spec nodes/stats'),
  ]),
  clusterRole('system:node-reader', [
    rule(READ, 'core', 'nodes'),
    rule('get', 'core', 'nodes/metrics nodes/spec'),
    rule('create get', 'core', 'nodes/stats'),
  ]),
  clusterRole(
    'registry-admin',
    [
      rule(BOTH, 'core', 'secrets serviceaccounts'),
      rule(BOTH, IMAGE, STREAMS),
      rule('create', IMAGE, 'imagestreamimports'),
      rule('get update', IMAGE, 'imagestreams/layers'),
      rule(BOTH, `${AUTHORIZATION} rbac.authorization.k8s.io`, 'rolebindings roles'),
      rule('create', AUTHORIZATION, LOCAL_REVIEWS),
      rule('get', 'core', 'namespaces'),
      rule('delete get', PROJECT, 'projects'),
    ],
    aggregateTo('admin'),
  ),
  clusterRole(
    'registry-editor',
    [
      rule(BOTH, 'core', 'secrets serviceaccounts'),
      rule(BOTH, IMAGE, STREAMS),
      rule('create', IMAGE, 'imagestreamimports'),
      rule('get update', IMAGE, 'imagestreams/layers'),
      rule('get', 'core', 'namespaces'),
      rule('get', PROJECT, 'projects'),
    ],
    aggregateTo('edit'),
  ),
  clusterRole(
    'registry-viewer',
    [
      rule(READ, IMAGE, SEEN_STREAMS),
      rule('get', IMAGE, 'imagestreams/layers'),
      rule('get', 'core', 'namespaces'),
      rule('get', PROJECT, 'projects'),
    ],
    aggregateTo('view'),
  ),
];

const AUTHENTICATED = group('system:authenticated');

/**
 * Earlier OpenShift releases also bound three of these roles to unauthenticated users. As in later releases, these
 * bindings require a login.
 */
export const OPENSHIFT_BINDINGS: readonly ClusterRoleBinding[] = [
  // Sudoers may impersonate system:admin, and so run single commands with the permissions of cluster-admin.
  clusterRoleBinding('cluster-admin', [group('system:cluster-admins'), user('system:admin')], 'cluster-admins'),
  clusterRoleBinding('cluster-reader', [group('system:cluster-readers')], 'cluster-readers'),
  clusterRoleBinding('basic-user', [AUTHENTICATED], 'basic-users'),
  clusterRoleBinding('self-access-reviewer', [AUTHENTICATED], 'self-access-reviewers'),
  clusterRoleBinding('cluster-status', [AUTHENTICATED], 'cluster-status-binding'),
  clusterRoleBinding('system:openshift:discovery', [AUTHENTICATED]),
  clusterRoleBinding('system:scope-impersonation', [AUTHENTICATED]),
  clusterRoleBinding('system:node-admin', [group('system:node-admins')], 'system:node-admins'),
];

/** Binding for profile `okd`: users who have logged in may request projects. */
export const SELF_PROVISIONERS: ClusterRoleBinding = clusterRoleBinding(
  'self-provisioner',
  [group('system:authenticated:oauth')],
  'self-provisioners',
);
