/**
 * Resolves the parameters of a policy binding. Source:
 * k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go.
 */

import type { KubeObject } from '../../../../api/meta/object.ts';
import { labelSelectorOf, matchesLabels } from '../../../../base/selector.ts';
import type { AdmissionRequest } from '../../../pipeline/admission.ts';
import type { Kinds, ServedKind } from '../../../pipeline/kinds.ts';
import { inServedVersion } from '../../../pipeline/kinds.ts';
import type { CachedObject } from '../../../watch-cache/cached-object.ts';
import type { Binding } from './bindings.ts';
import { gvkText, type ParamKind, type Policy } from './composition.ts';

/** Served kind of the parameters; undefined if there is none. */
export function kindOfParams({ apiVersion, kind }: ParamKind, kinds: Kinds): ServedKind | undefined {
  return kinds.all.find((each) => each.apiVersion === apiVersion && each.kind === kind);
}

const unknownParams = (paramKind: ParamKind): string =>
  `failed to find resource referenced by paramKind: '${gvkText(paramKind)}'`;

/**
 * Configuration problem that prevents the policy from being applied with any binding. Undefined if there is no problem.
 */
export function paramKindProblem({ paramKind }: Policy, kinds: Kinds): string | undefined {
  if (paramKind === undefined || kindOfParams(paramKind, kinds)?.cache !== undefined) return undefined;
  return `failed to configure policy: ${unknownParams(paramKind)}`;
}

/**
 * Parameters with which a binding applies: the policy is evaluated once for each. An undefined entry means no
 * parameter. An empty list means that the binding does not apply. Throws an Error if the binding is misconfigured.
 */
export async function paramsOf(
  policy: Policy,
  binding: Binding,
  request: AdmissionRequest,
  kinds: Kinds,
): Promise<readonly (KubeObject | undefined)[]> {
  const { paramKind } = policy;
  const ref = binding.paramRef;
  if (paramKind === undefined || ref === undefined) return [undefined];
  const kind = kindOfParams(paramKind, kinds);
  if (kind?.cache === undefined) throw new Error(unknownParams(paramKind));
  const namespace = namespaceOfParams(kind, ref.namespace ?? '', request);
  let found: readonly CachedObject[];
  if (ref.selector === undefined) {
    const object = kind.cache.get(namespace, ref.name ?? '');
    found = object === undefined ? [] : [object];
  } else {
    const selector = labelSelectorOf(ref.selector);
    const all = kind.cache.list(kind.definition.namespaced ? namespace : undefined);
    found = all.filter((object) => matchesLabels(selector, object.labels()));
  }
  if (found.length > 0) {
    return Promise.all(found.map(async (object) => (await inServedVersion(kind, object)).parse()));
  }
  if (ref.parameterNotFoundAction === 'Allow') return [];
  throw new Error('no params found for policy binding with `Deny` parameterNotFoundAction');
}

function namespaceOfParams(kind: ServedKind, named: string, request: AdmissionRequest): string {
  if (!kind.definition.namespaced) {
    if (named !== '') throw new Error('paramRef.namespace must not be provided for a cluster-scoped `paramKind`');
    return '';
  }
  if (named !== '') return named;
  if (request.namespace === '') {
    throw new Error('cannot use namespaced paramRef in policy binding that matches cluster-scoped resources');
  }
  return request.namespace;
}
