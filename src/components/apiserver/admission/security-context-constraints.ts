/**
 * Security context constraints of profile okd. Source: openshift/apiserver-library-go
 * pkg/securitycontextconstraints/sccadmission. Ephemeral containers are judged too, as in later releases; updates that
 * change nothing that constraints judge pass, so that pods outlive the constraints that admitted them.
 */
import type { Pod } from 'kubernetes-types/core/v1';
import { errorsText, isSameToConstraints, SCC_ANNOTATION, type Scope } from '../../../core/scc/admit.ts';
import { type ConstraintSources, reviewPod, serviceAccountUser } from '../constraints/review.ts';
import type { AdmissionRequest } from '../pipeline/admission.ts';
import type { AdmissionPlugin } from './admission.ts';
import { forbid, isFor, isMirrorPod } from './subject.ts';

const AUDIT = 'securitycontextconstraints.admission.openshift.io/';
const DEBUGGERS = 'ephemeralcontainers';
/**
 * Namespaces of the platform, where constraints do not apply. Source: openshift/kubernetes
 * openshift-kube-apiserver/admission/namespaceconditions.
 */
const PLATFORM = new Set(['default', 'kube-system', 'kube-public', 'openshift', 'openshift-infra', 'openshift-node']);
const RUN_LEVEL = 'openshift.io/run-level';
const NODES = 'system:nodes';

export function securityContextConstraint(sources: ConstraintSources): AdmissionPlugin {
  return {
    name: 'security.openshift.io/SecurityContextConstraint',
    resources: ['pods'],
    mutate(request): void | Promise<void> {
      if (!concerns(request)) return;
      const pod = request.object as Pod;
      const old = request.operation === 'UPDATE' ? (request.old as Pod) : undefined;
      const before = old?.metadata?.annotations?.[SCC_ANNOTATION];
      if (request.subresource === '' && old !== undefined) annotate(pod, before);
      if (isExempt(request, sources) || (old !== undefined && isSameToConstraints(pod, old))) return;
      return admit(request, sources, scopeOf(request), before ?? '').then((admitted) => {
        if (admitted.pod.spec !== undefined) pod.spec = admitted.pod.spec;
        if (request.subresource === '') annotate(pod, admitted.name);
      });
    },
    validate(request): void | Promise<void> {
      if (!concerns(request) || isExempt(request, sources)) return;
      const pod = request.object as Pod;
      if (request.operation === 'UPDATE' && isSameToConstraints(pod, request.old as Pod)) return;
      const hint = pod.metadata?.annotations?.[SCC_ANNOTATION] ?? '';
      return admit(request, sources, 'nothing', hint).then(({ name }) => request.annotate?.(`${AUDIT}chosen`, name));
    },
  };
}

function concerns(request: AdmissionRequest): boolean {
  if (!isFor(request, '', 'pods') || request.object === undefined) return false;
  if (request.operation === 'CREATE') return request.subresource === '';
  return request.operation === 'UPDATE' && (request.subresource === '' || request.subresource === DEBUGGERS);
}

/** A static pod runs whatever the API says: its node only mirrors it, and nodes can create no other pods. */
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
  scope: Scope,
  hint: string,
): Promise<{ readonly name: string; readonly pod: Pod }> {
  const pod = request.object as Pod;
  const account = pod.spec?.serviceAccountName ?? '';
  const verdict = await reviewPod(sources, {
    pod,
    namespace: request.namespace,
    subjects: [request.user, ...(account === '' ? [] : [serviceAccountUser(request.namespace, account)])],
    scope,
    hint,
    deadlineMs: request.deadlineMs,
  });
  if (verdict === undefined)
    throw forbid(request, 'no SecurityContextConstraints found in cluster; they are created at the next start');
  if ('name' in verdict) return verdict;
  const why = errorsText(verdict.errors);
  throw forbid(request, `unable to validate against any security context constraint: ${why}`);
}

/** Sets or, undefined, removes the annotation: clients have no say in it. */
function annotate(pod: Pod, name: string | undefined): void {
  const { annotations = {} } = pod.metadata ?? {};
  if (annotations[SCC_ANNOTATION] === name) return;
  if (name === undefined) delete annotations[SCC_ANNOTATION];
  else annotations[SCC_ANNOTATION] = name;
  pod.metadata = { ...pod.metadata, annotations };
}
