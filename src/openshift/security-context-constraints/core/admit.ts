/**
 * Selects the security context constraints (SCC) that admit a pod, and applies them. Source:
 * openshift/apiserver-library-go pkg/securitycontextconstraints/sccadmission.
 */
import type { Container, Pod, PodSpec } from '../../../api/generated/core/v1.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import { type FieldError, fieldError } from '../../../api/meta/field-error.ts';
import type { SecurityContextConstraints } from '../kinds/securitycontextconstraints/types.ts';
import { containerErrors, fillContainer } from './container-context.ts';
import { type NamespaceValues, withNamespaceValues } from './namespace-values.ts';
import { fillPod, podErrors } from './pod-context.ts';

/** Annotation with the name of the SCC that has admitted the pod. */
export const SCC_ANNOTATION = 'openshift.io/scc';

/**
 * Parts of the pod that an SCC may modify. `pod`: the whole pod, because it is new. `debuggers`: only the new ephemeral
 * containers. `nothing`: the pod must comply as it is.
 */
export type Scope = 'pod' | 'debuggers' | 'nothing';

export type AdmissionDecision =
  | { readonly name: string; readonly pod: Pod }
  /** Reasons why each SCC rejects the pod, in the order in which the SCCs were tried. */
  | { readonly errors: readonly FieldError[] };

const LISTS = ['initContainers', 'containers', 'ephemeralContainers'] as const;

/**
 * Tries the SCCs in order, beginning with the SCC named `hint`. Yields each SCC before trying it. The caller must pass
 * the values of the pod's namespace to `next()`, or undefined if neither the requester nor the pod's service account
 * may use the SCC.
 */
export function* admitPod(
  pod: Pod,
  constraints: readonly SecurityContextConstraints[],
  scope: Scope,
  hint = '',
): Generator<SecurityContextConstraints, AdmissionDecision, NamespaceValues | undefined> {
  const errors: FieldError[] = [];
  const isHinted = ({ metadata }: SecurityContextConstraints): boolean => hint !== '' && metadata?.name === hint;
  const ordered = [...constraints.filter(isHinted), ...constraints.filter((each) => !isHinted(each))];
  for (const scc of ordered) {
    const name = scc.metadata?.name ?? '';
    const namespace = yield scc;
    if (namespace === undefined) {
      errors.push(fieldError.forbidden(`provider ${JSON.stringify(name)}`, 'not usable by user or serviceaccount'));
      continue;
    }
    const tried = tryConstraints(scc, pod, namespace);
    if (tried.errors.length > 0) errors.push(...tried.errors);
    else if (isUnchanged(pod, tried.pod, scope)) return { name, pod: tried.pod };
    else errors.push(fieldError.forbidden(`provider ${JSON.stringify(name)}`, 'the pod would have to be changed'));
  }
  return { errors };
}

/** Formats errors like upstream's aggregates: `[a, b]`, or a single error without brackets. */
export function errorsText(errors: readonly FieldError[]): string {
  const texts = [...new Set(errors.map(({ field, message }) => `${field}: ${message}`))];
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
}

/** Whether all fields that SCCs check are equal in both pods. */
export function isSameToConstraints(pod: Pod, old: Pod): boolean {
  return semanticEqual(pod.spec, old.spec) && semanticEqual(seccompAnnotations(pod), seccompAnnotations(old));
}

function seccompAnnotations({ metadata }: Pod): Record<string, string> {
  const entries = Object.entries(metadata?.annotations ?? {});
  return Object.fromEntries(entries.filter(([key]) => key.includes('seccomp.security.alpha.kubernetes.io/')));
}

function tryConstraints(
  scc: SecurityContextConstraints,
  original: Pod,
  namespace: NamespaceValues,
): { readonly pod: Pod; readonly errors: FieldError[] } {
  const at = `provider ${scc.metadata?.name ?? ''}: `;
  const resolved = withNamespaceValues(scc, namespace);
  if (typeof resolved === 'string')
    return { pod: original, errors: [fieldError.forbidden(at.trimEnd().slice(0, -1), resolved)] };
  const pod = structuredClone(original);
  fillPod(resolved, pod);
  const errors = podErrors(resolved, pod, at);
  for (const list of LISTS)
    for (const [index, container] of containersOf(pod.spec, list).entries()) {
      fillContainer(resolved, pod, container);
      errors.push(...containerErrors(resolved, pod, container, `${at}.${list}[${index}]`, at));
    }
  return { pod, errors };
}

const containersOf = (spec: PodSpec | undefined, list: (typeof LISTS)[number]): Container[] =>
  (spec?.[list] ?? []) as Container[];

function isUnchanged(pod: Pod, filled: Pod, scope: Scope): boolean {
  if (scope === 'pod') return true;
  const compared =
    scope === 'debuggers'
      ? { ...filled.spec, ephemeralContainers: pod.spec?.ephemeralContainers }
      : (filled.spec as object);
  return semanticEqual(pod.spec, compared);
}
