/**
 * Security context constraints of profile okd. Ephemeral containers are checked too, as in later releases. Updates that
 * do not change checked fields pass, so that pods stay valid when the constraints that admitted them change. Source:
 * openshift/apiserver-library-go pkg/securitycontextconstraints/sccadmission.
 */
import type { Pod } from '../../../api/generated/core/v1.ts';
import {
  errorsText,
  isSameToConstraints,
  SCC_ANNOTATION,
  type Scope,
} from '../../../openshift/security-context-constraints/core/admit.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, isFor, isMirrorPod } from '../subject.ts';
import { type ConstraintSources, reviewPod, serviceAccountUser } from './constraint-review.ts';

const SCC_PLUGIN = 'security.openshift.io/SecurityContextConstraint';
const EXEC_PLUGIN = 'security.openshift.io/SCCExecRestrictions';
export const SCC_PLUGINS: readonly string[] = [SCC_PLUGIN, EXEC_PLUGIN];
const AUDIT = 'securitycontextconstraints.admission.openshift.io/';
const COMMANDS = new Set(['attach', 'exec']);
const DEBUGGERS = 'ephemeralcontainers';
/**
 * Namespaces of the platform, which are exempt from constraints. Source: openshift/kubernetes
 * openshift-kube-apiserver/admission/namespaceconditions.
 */
const PLATFORM = new Set(['default', 'kube-system', 'kube-public', 'openshift', 'openshift-infra', 'openshift-node']);
const RUN_LEVEL = 'openshift.io/run-level';
const NODES = 'system:nodes';

export function securityContextConstraint(sources: ConstraintSources): AdmissionPlugin {
  return {
    name: SCC_PLUGIN,
    resources: ['pods'],
    mutate(request): void | Promise<void> {
      if (!appliesTo(request)) return;
      const pod = request.object as Pod;
      const old = request.operation === 'UPDATE' ? (request.old as Pod) : undefined;
      const before = old?.metadata?.annotations?.[SCC_ANNOTATION];
      if (request.subresource === '' && old !== undefined) annotate(pod, before);
      if (isExempt(request, sources) || (old !== undefined && isSameToConstraints(pod, old))) return;
      return admit(request, sources, pod, scopeOf(request), before ?? '').then((admitted) => {
        if (admitted.pod.spec !== undefined) pod.spec = admitted.pod.spec;
        if (request.subresource === '') annotate(pod, admitted.name);
      });
    },
    validate(request): void | Promise<void> {
      if (!appliesTo(request) || isExempt(request, sources)) return;
      const pod = request.object as Pod;
      if (request.operation === 'UPDATE' && isSameToConstraints(pod, request.old as Pod)) return;
      const hint = pod.metadata?.annotations?.[SCC_ANNOTATION] ?? '';
      return admit(request, sources, pod, 'nothing', hint).then(({ name }) =>
        request.annotate?.(`${AUDIT}chosen`, name),
      );
    },
  };
}

/**
 * Restricts exec and attach to pods with host access: only users who could create such a pod may use them. The
 * permissions of the pod's service account are ignored. Source: openshift/apiserver-library-go
 * pkg/securitycontextconstraints/sccadmission, SCCExecRestrictions.
 */
export function execRestrictions(
  sources: ConstraintSources,
  podOf: (namespace: string, name: string) => CachedObject | undefined,
): AdmissionPlugin {
  return {
    name: EXEC_PLUGIN,
    resources: ['pods'],
    takesBodies: true,
    validate(request): void | Promise<void> {
      if (request.operation !== 'CONNECT' || !COMMANDS.has(request.subresource)) return;
      const pod = podOf(request.namespace, request.name)?.shared<Pod>();
      if (pod === undefined || !reachesHost(pod) || isExempt(request, sources)) return;
      return admit(request, sources, pod, 'nothing', pod.metadata?.annotations?.[SCC_ANNOTATION] ?? '').then(() => {});
    },
  };
}

function reachesHost({ spec }: Pod): boolean {
  if (spec?.hostPID === true || spec?.hostIPC === true) return true;
  const containers = [
    ...(spec?.initContainers ?? []),
    ...(spec?.containers ?? []),
    ...(spec?.ephemeralContainers ?? []),
  ];
  return containers.some(({ securityContext }) => securityContext?.privileged === true);
}

function appliesTo(request: AdmissionRequest): boolean {
  if (!isFor(request, '', 'pods') || request.object === undefined) return false;
  if (request.operation === 'CREATE') return request.subresource === '';
  return request.operation === 'UPDATE' && (request.subresource === '' || request.subresource === DEBUGGERS);
}

/** Mirror pods are exempt: the node runs the static pod in any case, and nodes cannot create other pods. */
function isExempt(request: AdmissionRequest, { namespace }: ConstraintSources): boolean {
  if (PLATFORM.has(request.namespace)) return true;
  if (isMirrorPod(request.object) && request.user.groups.includes(NODES)) return true;
  const level = namespace(request.namespace)?.labels()[RUN_LEVEL];
  return level === '0' || level === '1';
}

function scopeOf({ operation, subresource }: AdmissionRequest): Scope {
  if (operation === 'CREATE') return 'pod';
  return subresource === DEBUGGERS ? 'debuggers' : 'nothing';
}

async function admit(
  request: AdmissionRequest,
  sources: ConstraintSources,
  pod: Pod,
  scope: Scope,
  hint: string,
): Promise<{ readonly name: string; readonly pod: Pod }> {
  const account = request.operation === 'CONNECT' ? '' : (pod.spec?.serviceAccountName ?? '');
  const decision = await reviewPod(sources, {
    pod,
    namespace: request.namespace,
    subjects: [request.user, ...(account === '' ? [] : [serviceAccountUser(request.namespace, account)])],
    scope,
    hint,
    deadlineMs: request.deadlineMs,
  });
  if (decision === undefined)
    throw forbid(request, 'no SecurityContextConstraints found in cluster; they are created at the next start');
  if ('name' in decision) return decision;
  const why = errorsText(decision.errors);
  throw forbid(request, `unable to validate against any security context constraint: ${why}`);
}

/** Sets the annotation with the constraint that admitted the pod. Undefined: removes it. Clients cannot set it. */
function annotate(pod: Pod, name: string | undefined): void {
  const { annotations = {} } = pod.metadata ?? {};
  if (annotations[SCC_ANNOTATION] === name) return;
  if (name === undefined) delete annotations[SCC_ANNOTATION];
  else annotations[SCC_ANNOTATION] = name;
  pod.metadata = { ...pod.metadata, annotations };
}
