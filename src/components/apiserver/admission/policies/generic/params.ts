/** The objects a policy is parameterised with. Source: k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go. */
import type { KubeObject } from '../../../../../api/meta/object.ts';
import { labelSelectorOf, matchesLabels } from '../../../../../base/selector.ts';
import type { Kinds, ServedKind } from '../../../rest/kinds.ts';
import { shown } from '../../../rest/view.ts';
import type { CachedObject } from '../../../watchcache/cached-object.ts';
import type { AdmissionRequest } from '../../index.ts';
import type { Binding } from './bindings.ts';
import type { Policy } from './composition.ts';

/** Each is judged by; undefined stands for no parameter. None: the binding does not apply. Throws what is wrong with the binding. */
export async function paramsOf(
  policy: Policy,
  binding: Binding,
  request: AdmissionRequest,
  kinds: Kinds,
): Promise<readonly (KubeObject | undefined)[]> {
  const { paramKind } = policy;
  const ref = binding.paramRef;
  if (paramKind === undefined || ref === undefined) return [undefined];
  const kind = kinds.all.find((each) => each.apiVersion === paramKind.apiVersion && each.kind === paramKind.kind);
  if (kind?.cache === undefined) {
    throw new Error(
      `failed to find resource referenced by paramKind: '${paramKind.apiVersion}, Kind=${paramKind.kind}'`,
    );
  }
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
    return Promise.all(found.map(async (object) => (await shown(kind, object)).parse()));
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
    throw new Error("can't use namespaced paramRef in policy binding that matches cluster-scoped resources");
  }
  return request.namespace;
}
