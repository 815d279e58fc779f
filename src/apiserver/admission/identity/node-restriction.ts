/**
 * Restricts the fields that a kubelet may write. The node authorizer restricts the objects. Source:
 * plugin/pkg/admission/noderestriction; KEP-279, KEP-2787.
 */

import type { ResourceSlice } from '../../../api/devices/types.ts';
import type { TokenRequest } from '../../../api/generated/authentication/v1.ts';
import type { Node, PersistentVolumeClaim, Pod } from '../../../api/generated/core/v1.ts';
import {
  GROUP_CLAIM,
  GROUP_LABEL,
  isRestrictedLabel,
  mayKubeletLabel,
} from '../../../api/kinds/nodes/nodes/own-labels.ts';
import { PROTECTED_ANNOTATIONS } from '../../../api/kinds/nodes/nodes/serving-addresses.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { errors } from '../../../api/meta/status.ts';
import { apiReference } from '../../../api/podspec/api-references.ts';
import { KUBERNETES_VERSION } from '../../../base/versions/version.ts';
import { newerKubelet } from '../../../base/versions/version-skew.ts';
import { RIG_GROUP } from '../../../rigs/kinds/rig-types.ts';
import { type Decision, nodeNameOf } from '../../core/authorization/index.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { AdmissionPlugin } from '../admission.ts';
import type { AccessSource } from '../authorizer.ts';
import { forbid, isFor, isMirrorPod, MIRROR_ANNOTATION } from '../subject.ts';
import { type AudienceSources, requestsAudience } from './token-audiences.ts';

export interface NodeRestrictionSources extends AudienceSources {
  node(name: string): CachedObject | undefined;
  pod(namespace: string, name: string): CachedObject | undefined;
  readonly access: AccessSource;
  /** Stores the node group of a Node whose own host deletes it. */
  rememberGroup(node: KubeObject, group: string): Promise<void>;
}

export function nodeRestriction(sources: NodeRestrictionSources): AdmissionPlugin {
  return {
    name: 'NodeRestriction',
    // Runs in the mutating phase, as in upstream, because the server's default audiences are set after this phase. The
    // check must see the audiences that the client sent.
    async mutate(request) {
      const nodeName = nodeNameOf(request.user);
      if (nodeName === undefined) return;
      if (isFor(request, '', 'serviceaccounts') && request.subresource === 'token') {
        await checkToken(request, nodeName, sources);
      }
    },
    async validate(request) {
      const nodeName = nodeNameOf(request.user);
      if (nodeName === undefined) return;
      if (isFor(request, '', 'nodes')) {
        checkNode(request, nodeName);
        const left = request.operation === 'DELETE' && !request.dryRun ? request.old : undefined;
        const group = left?.metadata?.labels?.[GROUP_LABEL];
        // The group is kept so that the host cannot claim another group when it registers again.
        if (left !== undefined && group !== undefined) await sources.rememberGroup(left, group);
      }
      if (isFor(request, '', 'pods')) checkPod(request, nodeName, sources);
      else if (isFor(request, '', 'persistentvolumeclaims')) checkClaim(request, nodeName);
      else if (isFor(request, 'coordination.k8s.io', 'leases')) {
        if (request.namespace !== 'kube-node-lease' || nameOf(request) !== nodeName) {
          throw forbid(request, `can only access node lease with the same name as the requesting node`);
        }
      } else if (isFor(request, 'resource.k8s.io', 'resourceslices')) checkSlice(request, nodeName);
      else if (isFor(request, 'storage.k8s.io', 'csinodes') && nameOf(request) !== nodeName) {
        throw forbid(request, 'can only access CSINode with the same name as the requesting node');
      }
    },
  };
}

/** Prefix of the taints of the node lifecycle controller, which sets them again after a new registration. */
const LIFECYCLE_TAINTS = 'node.kubernetes.io/';

const nameOf = (request: AdmissionRequest): string => request.object?.metadata?.name ?? request.name;

function checkNode(request: AdmissionRequest, nodeName: string): void {
  const name = nameOf(request);
  if (name !== nodeName)
    throw forbid(request, `node ${JSON.stringify(nodeName)} is not allowed to modify node ${JSON.stringify(name)}`);
  if (request.operation === 'DELETE') {
    checkDeletedNode(request, nodeName);
    return;
  }
  const node = request.object as Node;
  const old = request.old as Node | undefined;
  if (request.operation === 'CREATE') {
    if (node.spec?.configSource !== undefined)
      throw forbid(
        request,
        `node ${JSON.stringify(nodeName)} is not allowed to create pods with a non-nil configSource`,
      );
    if ((node.metadata?.ownerReferences ?? []).length > 0)
      throw forbid(request, `node ${JSON.stringify(nodeName)} is not allowed to set ownerReferences on its node`);
    const skew = newerKubelet(node.status?.nodeInfo?.kubeletVersion ?? '', KUBERNETES_VERSION.gitVersion);
    if (skew !== undefined) throw forbid(request, skew);
  } else {
    if (!semanticEqual(node.spec?.configSource, old?.spec?.configSource)) {
      throw forbid(request, `node ${JSON.stringify(nodeName)} is not allowed to update configSource`);
    }
    if (!semanticEqual(node.spec?.taints, old?.spec?.taints)) {
      throw forbid(request, `node ${JSON.stringify(nodeName)} is not allowed to modify taints`);
    }
    if (!semanticEqual(node.metadata?.ownerReferences, old?.metadata?.ownerReferences)) {
      throw forbid(request, `node ${JSON.stringify(nodeName)} is not allowed to modify ownerReferences`);
    }
  }
  const annotation = PROTECTED_ANNOTATIONS.find((each) => {
    const [now, before] = [node.metadata?.annotations?.[each], old?.metadata?.annotations?.[each]];
    // The API server adds one of the annotations with an empty value to a new Node.
    return now !== before && !(before === undefined && now === '');
  });
  if (annotation !== undefined) throw forbid(request, `is not allowed to modify annotations: ${annotation}`);
  const wrong = changedLabels(node, old).filter((label) => !mayKubeletLabel(label));
  if (wrong.length > 0) {
    throw forbid(request, `is not allowed to modify labels: ${wrong.sort().join(', ')}`);
  }
}

/** Rejects the deletion if a new registration would lose taints or labels that an administrator has set on the Node. */
function checkDeletedNode(request: AdmissionRequest, nodeName: string): void {
  const { metadata, spec } = (request.old ?? {}) as Node;
  const taint = spec?.taints?.find(({ key }) => !key.startsWith(LIFECYCLE_TAINTS));
  // This label does not prevent the deletion: the registration sets the label again if the host itself has claimed the
  // group.
  const group = metadata?.annotations?.[GROUP_CLAIM];
  const label = Object.entries(metadata?.labels ?? {}).find(
    ([name, value]) => isRestrictedLabel(name) && !(name === GROUP_LABEL && value === group),
  )?.[0];
  if (taint === undefined && label === undefined) return;
  const what = taint === undefined ? `label ${label}` : `taint ${taint.key}`;
  throw forbid(request, `node ${JSON.stringify(nodeName)} is not allowed to delete its node with the ${what}`);
}

function changedLabels(node: Node, old: Node | undefined): string[] {
  const now = node.metadata?.labels ?? {};
  const before = old?.metadata?.labels ?? {};
  return [...new Set([...Object.keys(now), ...Object.keys(before)])].filter((label) => now[label] !== before[label]);
}

function checkPod(request: AdmissionRequest, nodeName: string, sources: NodeRestrictionSources): void {
  if (request.operation === 'CREATE') {
    checkMirrorPod(request, nodeName, sources);
    return;
  }
  const old = request.old as Pod;
  const bound = old.spec?.nodeName ?? '';
  if (bound !== nodeName) {
    const act = request.operation === 'DELETE' ? 'delete' : 'update status for';
    throw forbid(request, `node ${JSON.stringify(nodeName)} can only ${act} pods with spec.nodeName set to itself`);
  }
  if (request.operation === 'UPDATE') {
    // Evictions update the pod with values that this server chooses.
    if (request.subresource !== 'status' && request.subresource !== 'eviction')
      throw forbid(request, `node ${JSON.stringify(nodeName)} can only update pod status`);
    const pod = request.object as Pod;
    if (!semanticEqual(pod.metadata?.labels, old.metadata?.labels)) {
      throw forbid(request, `node ${JSON.stringify(nodeName)} cannot update labels through pod status`);
    }
    if (!semanticEqual(claimStatuses(pod), claimStatuses(old))) {
      throw forbid(request, `node ${JSON.stringify(nodeName)} cannot update resource claim statuses`);
    }
  }
}

/**
 * Checks create and delete of slices only. For other verbs the node authorizer decides by the stored slice; it cannot
 * do so for new slices or for the objects of a deleted collection.
 */
function checkSlice(request: AdmissionRequest, nodeName: string): void {
  const { operation } = request;
  if (operation !== 'CREATE' && operation !== 'DELETE') return;
  const slice = (operation === 'CREATE' ? request.object : request.old) as ResourceSlice | undefined;
  if (slice?.spec?.nodeName !== nodeName)
    throw forbid(
      request,
      `can only ${operation.toLowerCase()} ResourceSlice with the same NodeName as the requesting node`,
    );
  // The pool of a fixture determines the node whose fixture a claim uses.
  if (operation === 'CREATE' && slice.spec.driver === RIG_GROUP && slice.spec.pool?.name !== nodeName)
    throw forbid(request, `can only create ResourceSlices of ${RIG_GROUP} in the pool of the requesting node`);
}

/** Claim statuses of a pod decide which claims its node may read, so the node must not change them. */
function claimStatuses(pod: Pod): unknown {
  const { resourceClaimStatuses, extendedResourceClaimStatus } = (pod.status ?? {}) as Readonly<
    Record<string, unknown>
  >;
  return { resourceClaimStatuses, extendedResourceClaimStatus };
}

/**
 * Allows a kubelet to report a grown file system. The kubelet must not change labels, owners, finalizers or the phase.
 */
function checkClaim(request: AdmissionRequest, nodeName: string): void {
  if (request.operation !== 'UPDATE' || request.subresource !== 'status')
    throw forbid(request, 'may only update PVC status');
  if (semanticEqual(beyondSize(request.object), beyondSize(request.old))) return;
  throw forbid(
    request,
    `node ${JSON.stringify(nodeName)} is not allowed to update fields other than status.capacity and status.conditions`,
  );
}

/** A copy of the claim without the fields that a node may write and the fields that every write changes. */
function beyondSize(object: KubeObject | undefined): object {
  const claim = (object ?? {}) as PersistentVolumeClaim;
  const { resourceVersion: _version, managedFields: _fields, ...metadata } = claim.metadata ?? {};
  const {
    capacity: _capacity,
    conditions: _conditions,
    allocatedResources: _allocated,
    allocatedResourceStatuses: _statuses,
    ...status
  } = claim.status ?? {};
  return { ...claim, metadata, status };
}

/**
 * Checks a mirror pod. The kubelet already runs the static pod, so the mirror pod must not refer to further objects.
 */
function checkMirrorPod(request: AdmissionRequest, nodeName: string, sources: NodeRestrictionSources): void {
  const pod = request.object as Pod;
  const refuse = (why: string): never => {
    throw forbid(request, why);
  };
  if (!isMirrorPod(pod)) {
    refuse(
      `pod does not have ${JSON.stringify(MIRROR_ANNOTATION)} annotation, node ${JSON.stringify(nodeName)} can only create mirror pods`,
    );
  }
  if (pod.spec?.nodeName !== nodeName) {
    refuse(`node ${JSON.stringify(nodeName)} can only create pods with spec.nodeName set to itself`);
  }
  const [owner, ...others] = pod.metadata?.ownerReferences ?? [];
  if (
    owner === undefined ||
    others.length > 0 ||
    owner.apiVersion !== 'v1' ||
    owner.kind !== 'Node' ||
    owner.name !== nodeName
  ) {
    refuse(`node ${JSON.stringify(nodeName)} can only create pods with an owner reference set to itself`);
    return;
  }
  if (owner.controller !== true)
    refuse(`node ${JSON.stringify(nodeName)} can only create pods with a controller owner reference set to itself`);
  if (owner.blockOwnerDeletion === true)
    refuse(`node ${JSON.stringify(nodeName)} must not set blockOwnerDeletion on an owner reference`);
  const uid = sources.node(nodeName)?.shared<Node>().metadata?.uid;
  if (uid === undefined || owner.uid !== uid) {
    refuse(`node ${nodeName} UID mismatch: expected ${owner.uid} got ${uid ?? ''}`);
  }
  const reached = apiReference(pod);
  if (reached !== undefined) refuse(`node ${JSON.stringify(nodeName)} can not create pods that reference ${reached}`);
}

function checkToken(
  request: AdmissionRequest,
  nodeName: string,
  sources: NodeRestrictionSources,
): void | Promise<void> {
  const reference = (request.body as TokenRequest | undefined)?.spec?.boundObjectRef;
  if (
    reference === undefined ||
    reference === null ||
    reference.kind !== 'Pod' ||
    (reference.apiVersion ?? 'v1') !== 'v1' ||
    !reference.name
  ) {
    throw forbid(request, 'node requested token not bound to a pod');
  }
  if (!reference.uid) throw forbid(request, 'node requested token with a pod binding without a uid');
  const pod = sources.pod(request.namespace, reference.name)?.shared<Pod>();
  if (pod === undefined) throw errors.notFound({ group: '', plural: 'pods' }, reference.name);
  if (pod.metadata?.uid !== reference.uid) {
    throw forbid(
      request,
      'the UID in the bound object reference does not match the UID in record. The object might have been deleted and then recreated',
    );
  }
  if (pod.spec?.nodeName !== nodeName) {
    throw forbid(request, 'node requested token bound to a pod scheduled on a different node');
  }
  const [audience = '', ...others] = (request.body as TokenRequest).spec?.audiences ?? [];
  if (others.length > 0) throw forbid(request, 'node may only request 0 or 1 audiences');
  if (!requestsAudience(pod, audience, sources)) return requireAudience(request, audience, sources.access);
}

/** Requires an explicit grant for an audience that no volume names, such as that of a credential provider. */
function requireAudience(request: AdmissionRequest, audience: string, access: AccessSource): void | Promise<void> {
  const decided = access.authorize(request.user, {
    verb: 'request-serviceaccounts-token-audience',
    group: '',
    resource: audience,
    subresource: '',
    namespace: request.namespace,
    name: request.name,
  });
  const check = ({ allowed }: Decision): void => {
    if (allowed) return;
    throw forbid(
      request,
      `audience ${JSON.stringify(audience)} not found in pod spec volume, ${request.user.name} is not authorized to request tokens for this audience`,
    );
  };
  return decided instanceof Promise ? decided.then(check) : check(decided);
}
