/** Node authorizer: what a kubelet may read and write. */
import type { PersistentVolume, Pod } from '../../../api/generated/core/v1.ts';
import type { Ingress } from '../../../api/generated/networking/v1.ts';
import type { PolicyRule } from '../../../api/generated/rbac/v1.ts';
import type { VolumeAttachment } from '../../../api/generated/storage/v1.ts';
import { NODE_RULES } from './bootstrap/node-rules.ts';
import { NodeGraph, type SliceOfNode } from './node-graph.ts';
import { CompiledRules } from './rules.ts';
import { type Action, type Decision, isPathAction, pinsField, type ResourceAction, type UserInfo } from './types.ts';

export const NODES_GROUP = 'system:nodes';
export const NODE_USER_PREFIX = 'system:node:';
/** Namespace of the heartbeat leases of nodes. */
const LEASE_NAMESPACE = 'kube-node-lease';

/**
 * The node authorizer: a kubelet may read what its own pods need and write its own objects. NodeRestriction admission
 * restricts the fields. Source: k8s.io/kubernetes/plugin/pkg/auth/authorizer/node; KEP-4601 for selectors.
 */
export interface NodeAuthorizer {
  setPod(pod: Pod): void;
  deletePod(namespace: string, name: string): void;
  setPersistentVolume(volume: PersistentVolume): void;
  deletePersistentVolume(name: string): void;
  /** Nodes may read the secrets that ingresses name as certificates. */
  setIngress(ingress: Ingress): void;
  deleteIngress(namespace: string, name: string): void;
  setVolumeAttachment(attachment: VolumeAttachment): void;
  deleteVolumeAttachment(name: string): void;
  setResourceSlice(slice: SliceOfNode): void;
  deleteResourceSlice(name: string): void;
  /**
   * Decides a request of a node. Undefined if the user is not a node; the next authorizer decides then. Callers need
   * not cache the decision, because it takes a microsecond.
   */
  authorize(user: UserInfo, action: Action): Decision | undefined;
}

/** Node name in the user name of a node's credentials. Undefined for all other users; never an empty string. */
export function nodeNameOf(user: UserInfo): string | undefined {
  if (!user.name.startsWith(NODE_USER_PREFIX) || !user.groups.includes(NODES_GROUP)) return undefined;
  const name = user.name.slice(NODE_USER_PREFIX.length);
  return name === '' ? undefined : name;
}

export function createNodeAuthorizer(rules: readonly PolicyRule[] = NODE_RULES): NodeAuthorizer {
  const graph = new NodeGraph();
  const compiled = new CompiledRules(rules);
  return {
    setPod: (pod) => graph.setPod(pod),
    deletePod: (namespace, name) => graph.deletePod(namespace, name),
    setPersistentVolume: (volume) => graph.setPersistentVolume(volume),
    deletePersistentVolume: (name) => graph.deletePersistentVolume(name),
    setIngress: (ingress) => graph.setIngress(ingress),
    deleteIngress: (namespace, name) => graph.deleteIngress(namespace, name),
    setVolumeAttachment: (attachment) => graph.setVolumeAttachment(attachment),
    deleteVolumeAttachment: (name) => graph.deleteVolumeAttachment(name),
    setResourceSlice: (slice) => graph.setResourceSlice(slice),
    deleteResourceSlice: (name) => graph.deleteResourceSlice(name),
    authorize(user, action) {
      const nodeName = nodeNameOf(user);
      if (nodeName === undefined) return undefined;
      if (isPathAction(action)) return compiled.allowsPath(action) ? ALLOWED : denied('');
      const special = SPECIAL.get(`${action.group}/${action.resource}`);
      if (special !== undefined) return special(graph, nodeName, action);
      return compiled.allowsResource(action) ? ALLOWED : denied('');
    },
  };
}

type Rule = (graph: NodeGraph, nodeName: string, action: ResourceAction) => Decision;

const ALLOWED: Decision = { allowed: true, reason: '' };
const denied = (reason: string): Decision => ({ allowed: false, reason });
const unrelated = (nodeName: string): Decision =>
  denied(`no relationship found between node '${nodeName}' and this object`);

const readReferenced =
  (kind: 'secret' | 'configmap'): Rule =>
  (graph, nodeName, action) => {
    if (!isRead(action.verb)) return denied('can only read resources of this type');
    if (action.subresource !== '') return denied('cannot read subresource');
    if (action.namespace === '' || action.name === '') {
      return denied('No Object name found: can only read namespaced object of this type by name');
    }
    return graph.refers(nodeName, kind, action.namespace, action.name) ? ALLOWED : unrelated(nodeName);
  };

const claims: Rule = (graph, nodeName, action) => {
  const wanted =
    action.subresource === 'status' ? ['get', 'update', 'patch'] : action.subresource === '' ? ['get'] : [];
  if (!wanted.includes(action.verb)) return denied('can only get persistent volume claims and write their status');
  return graph.refers(nodeName, 'persistentvolumeclaim', action.namespace, action.name) ? ALLOWED : unrelated(nodeName);
};

const getRelated =
  (related: (graph: NodeGraph, nodeName: string, name: string) => boolean): Rule =>
  (graph, nodeName, action) => {
    if (action.verb !== 'get') return denied('can only get individual resources of this type');
    if (action.subresource !== '') return denied('cannot get subresource');
    return related(graph, nodeName, action.name) ? ALLOWED : unrelated(nodeName);
  };

const volumes = getRelated((graph, nodeName, name) => graph.refersToVolume(nodeName, name));

const volumeAttachments = getRelated((graph, nodeName, name) => graph.nodeOfVolumeAttachment(name) === nodeName);

const serviceAccounts: Rule = (graph, nodeName, action) => {
  const requested = `${action.verb} ${action.subresource}`.trim();
  if (requested !== 'create token' && requested !== 'get')
    return denied('can only create tokens for individual service accounts');
  return graph.refers(nodeName, 'serviceaccount', action.namespace, action.name) ? ALLOWED : unrelated(nodeName);
};

const leases: Rule = (_graph, nodeName, action) => {
  if (action.namespace !== LEASE_NAMESPACE) {
    return denied(`can only access leases in the "${LEASE_NAMESPACE}" system namespace`);
  }
  return ownObject(nodeName, action, 'node lease');
};

const csiNodes: Rule = (_graph, nodeName, action) => ownObject(nodeName, action, 'CSINode');

/**
 * Permits access to the object with the node's name. The path of a create has no name, so admission checks the body.
 */
function ownObject(nodeName: string, action: ResourceAction, what: string): Decision {
  if (action.subresource !== '') return denied(`cannot authorize ${what} subresources`);
  if (!['get', 'create', 'update', 'patch', 'delete'].includes(action.verb)) {
    return denied(`can only get, create, update, patch, or delete a ${what}`);
  }
  if (action.verb === 'create' && action.name === '') return ALLOWED;
  return action.name === nodeName
    ? ALLOWED
    : denied(`can only access ${what} with the same name as the requesting node`);
}

const nodes: Rule = (_graph, nodeName, action) => {
  const { verb, subresource, name } = action;
  if (subresource === '' && verb === 'create') return ALLOWED;
  // A host that leaves the cluster deletes its own Node. Admission rejects the deletion if it would remove a taint.
  const verbs = subresource === '' ? ['get', 'list', 'watch', 'update', 'patch', 'delete'] : ['get', 'update', 'patch'];
  if ((subresource !== '' && subresource !== 'status') || !verbs.includes(verb)) {
    return denied('can only register, read and update its own node');
  }
  if (name === nodeName) return ALLOWED;
  return denied(
    `node '${nodeName}' cannot ${isRead(verb) ? 'read' : 'modify'} ${name === '' ? 'all nodes' : `'${name}'`}, only its own Node object`,
  );
};

const pods: Rule = (graph, nodeName, action) => {
  const { verb, subresource, namespace, name } = action;
  switch (`${verb} ${subresource}`.trim()) {
    case 'create':
    case 'delete':
    case 'update status':
    case 'patch status':
    case 'create eviction':
      return ALLOWED;
    case 'get':
    case 'get status':
      return graph.nodeOfPod(namespace, name) === nodeName ? ALLOWED : unrelated(nodeName);
    case 'list':
    case 'watch': {
      if (pinsField(action, 'spec.nodeName', nodeName)) return ALLOWED;
      if (name !== '' && graph.nodeOfPod(namespace, name) === nodeName) return ALLOWED;
      return denied('can only list/watch pods with spec.nodeName field selector');
    }
    default:
      return denied('can only read, mirror, delete, evict and report the status of pods');
  }
};

const resourceClaims: Rule = (graph, nodeName, action) => {
  if (action.verb !== 'get') return denied('can only get individual resources of this type');
  if (action.subresource !== '') return denied('cannot get subresource');
  return graph.refers(nodeName, 'resourceclaim', action.namespace, action.name) ? ALLOWED : unrelated(nodeName);
};

/**
 * The graph knows the node of stored slices only. Admission checks new slices and the slices that a deletecollection
 * deletes.
 */
const resourceSlices: Rule = (graph, nodeName, action) => {
  const { verb, subresource, name } = action;
  if (subresource !== '') return denied('cannot authorize ResourceSlice subresources');
  switch (verb) {
    case 'create':
      return ALLOWED;
    case 'get':
    case 'update':
    case 'patch':
    case 'delete':
      return graph.nodeOfResourceSlice(name) === nodeName ? ALLOWED : unrelated(nodeName);
    case 'list':
    case 'watch':
    case 'deletecollection':
      return pinsField(action, 'spec.nodeName', nodeName)
        ? ALLOWED
        : denied('can only list/watch/deletecollection resourceslices with spec.nodeName field selector');
    default:
      return denied(
        'only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection',
      );
  }
};

/** Resources whose permissions depend on the node and its pods. */
const SPECIAL: ReadonlyMap<string, Rule> = new Map([
  ['/secrets', readReferenced('secret')],
  ['/configmaps', readReferenced('configmap')],
  ['/persistentvolumeclaims', claims],
  ['/persistentvolumes', volumes],
  ['/serviceaccounts', serviceAccounts],
  ['/nodes', nodes],
  ['/pods', pods],
  ['coordination.k8s.io/leases', leases],
  ['resource.k8s.io/resourceclaims', resourceClaims],
  ['resource.k8s.io/resourceslices', resourceSlices],
  ['storage.k8s.io/csinodes', csiNodes],
  ['storage.k8s.io/volumeattachments', volumeAttachments],
]);

function isRead(verb: string): boolean {
  return verb === 'get' || verb === 'list' || verb === 'watch';
}
