import type { PolicyRule } from '../../../../api/generated/rbac/v1.ts';
import { eventsRule, READ, rule, urlRule } from './notation.ts';

/**
 * Upper limit of a kubelet's permissions. For secrets, config maps, claims, volumes, service accounts, pods, nodes,
 * leases, CSI nodes, resource claims and resource slices, the node authorizer permits only the objects of the node.
 */
export const NODE_RULES: readonly PolicyRule[] = [
  rule('create', 'authentication.k8s.io', 'tokenreviews'),
  rule('create', 'authorization.k8s.io', 'localsubjectaccessreviews subjectaccessreviews'),
  rule(READ, 'core', 'services'),
  rule('create get list watch', 'core', 'nodes'),
  rule('patch update', 'core', 'nodes nodes/status'),
  eventsRule,
  rule(READ, 'core', 'pods'),
  rule('create delete', 'core', 'pods'),
  rule('patch update', 'core', 'pods/status'),
  rule('create', 'core', 'pods/eviction'),
  rule(READ, 'core', 'configmaps secrets'),
  rule('get', 'core', 'endpoints persistentvolumeclaims persistentvolumes'),
  rule('get patch update', 'core', 'persistentvolumeclaims/status'),
  rule('create get list watch', 'certificates.k8s.io', 'certificatesigningrequests'),
  rule('create delete get patch update', 'coordination.k8s.io', 'leases'),
  rule('get', 'storage.k8s.io', 'volumeattachments'),
  rule(READ, 'storage.k8s.io', 'csidrivers'),
  rule('create delete get patch update', 'storage.k8s.io', 'csinodes'),
  rule('create', 'core', 'serviceaccounts/token'),
  rule('get', 'core', 'serviceaccounts'),
  rule(READ, 'node.k8s.io', 'runtimeclasses'),
  rule('get', 'resource.k8s.io', 'resourceclaims'),
  rule('create delete deletecollection get list patch update watch', 'resource.k8s.io', 'resourceslices'),
  // The kubelet reports the images in its store. An Image is named by the digest of its content and never changes.
  rule('create get', 'image.openshift.io', 'images'),
  // Paths that system:discovery and system:public-info-viewer grant to every authenticated user.
  urlRule('get', '/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/'),
];
