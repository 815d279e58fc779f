/**
 * Matches requests to webhooks and policies: rules, match policy, selectors. Source:
 * k8s.io/apiserver/pkg/admission/plugin/webhook/{rules,predicates}, pkg/admission/plugin/policy/matching.
 */

import type { MatchResources, RuleWithOperations } from '../../api/generated/admissionregistration/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { errors } from '../../api/meta/status.ts';
import { isEverything, type LabelSelector, type Labels, labelSelectorOf, matchesLabels } from '../../base/selector.ts';
import type { AdmissionRequest } from '../pipeline/admission.ts';
import type { Kinds, ServedKind } from '../pipeline/kinds.ts';
import type { CachedObject } from '../watch-cache/cached-object.ts';

/** Adds fields that the type declarations lack. */
type Rule = RuleWithOperations & {
  readonly scope?: string;
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
};

/** Match criteria shared by webhooks and policies, which keep their rules in different fields. */
export interface MatchSpec {
  readonly rules: readonly Rule[];
  readonly excluded: readonly Rule[];
  readonly equivalent: boolean;
  readonly namespaces: LabelSelector;
  readonly objects: LabelSelector;
}

export const compileMatch = (spec: {
  readonly rules?: readonly unknown[] | undefined;
  readonly excludeResourceRules?: readonly unknown[] | undefined;
  readonly matchPolicy?: string | undefined;
  readonly namespaceSelector?: MatchResources['namespaceSelector'];
  readonly objectSelector?: MatchResources['objectSelector'];
}): MatchSpec => ({
  rules: (spec.rules ?? []) as readonly Rule[],
  excluded: (spec.excludeResourceRules ?? []) as readonly Rule[],
  equivalent: spec.matchPolicy !== 'Exact',
  namespaces: labelSelectorOf(spec.namespaceSelector ?? {}),
  objects: labelSelectorOf(spec.objectSelector ?? {}),
});

const listed = (values: readonly string[] | undefined, value: string): boolean =>
  values?.includes('*') === true || values?.includes(value) === true;

function ruleMatches(rule: Rule, request: AdmissionRequest, kind: ServedKind): boolean {
  if (!listed(rule.operations, request.operation)) return false;
  if (!listed(rule.apiGroups, kind.group) || !listed(rule.apiVersions, kind.version)) return false;
  if (rule.scope === 'Namespaced' || rule.scope === 'Cluster') {
    // Namespaces are cluster-scoped although requests for them carry their own name as the namespace.
    const namespaced = kind.definition.namespaced;
    if (namespaced !== (rule.scope === 'Namespaced')) return false;
  }
  if ((rule.resourceNames ?? []).length > 0 && rule.resourceNames?.includes(request.name) !== true) return false;
  return (rule.resources ?? []).some((resource) => {
    const slash = resource.indexOf('/');
    const name = slash < 0 ? resource : resource.slice(0, slash);
    const sub = slash < 0 ? '' : resource.slice(slash + 1);
    return (name === '*' || name === kind.plural) && (sub === '*' || sub === request.subresource);
  });
}

/**
 * Kind in which a webhook or policy with the rules of `spec` sees the request: the requested kind, or an equivalent
 * version of the same objects. Undefined if the rules do not match.
 */
export function matchRules(spec: MatchSpec, request: AdmissionRequest, kinds: Kinds): ServedKind | undefined {
  const { kind } = request;
  const any = (rules: readonly Rule[], as: ServedKind): boolean => rules.some((rule) => ruleMatches(rule, request, as));
  const same = spec.equivalent ? equivalents(kind, kinds) : [];
  if (any(spec.excluded, kind) || same.some((other) => any(spec.excluded, other))) return undefined;
  if (any(spec.rules, kind)) return kind;
  return same.find((other) => any(spec.rules, other));
}

/** Other versions and groups that serve the same objects. */
function equivalents(kind: ServedKind, kinds: Kinds): ServedKind[] {
  const isSame = (other: ServedKind): boolean =>
    other !== kind &&
    (kind.definition.custom === undefined
      ? other.definition === kind.definition
      : other.definition.custom !== undefined && other.group === kind.group && other.plural === kind.plural);
  return kinds.all.filter(isSame);
}

/**
 * Reports whether `spec` may match requests of this kind and operation, whatever their names. The result can be cached.
 */
export function mayMatch(spec: MatchSpec, request: AdmissionRequest, kinds: Kinds): boolean {
  const rules = spec.rules.map(({ resourceNames: _names, ...rule }) => rule as Rule);
  return matchRules({ ...spec, rules, excluded: [] }, request, kinds) !== undefined;
}

/** Reports whether the namespace selector and the object selector of `spec` match the request. */
export async function selectsRequest(
  spec: MatchSpec,
  request: AdmissionRequest,
  source: NamespaceSource,
): Promise<boolean> {
  if (!isEverything(spec.namespaces)) {
    const labels = await namespaceLabels(request, source);
    if (labels !== undefined && !matchesLabels(spec.namespaces, labels)) return false;
  }
  return matchesObject(spec, request);
}

/** Source of the namespaces whose labels are matched. */
export interface NamespaceSource {
  cached(name: string): CachedObject | undefined;
  /** Reads from the store, for a namespace that was created too recently to be in the watch cache. */
  stored(name: string): Promise<CachedObject | undefined>;
}

/** Labels for the namespace selector. Undefined: the request has no namespace, and every selector matches. */
async function namespaceLabels(request: AdmissionRequest, source: NamespaceSource): Promise<Labels | undefined> {
  const found = await namespaceOf(request, source);
  return found === undefined ? undefined : (found.metadata?.labels ?? {});
}

/** The namespace that contains the object, or the object itself if it is a namespace. */
export async function namespaceOf(request: AdmissionRequest, source: NamespaceSource): Promise<KubeObject | undefined> {
  const { kind, object } = request;
  if (kind.plural === 'namespaces' && kind.definition.group === '') {
    // A write of a namespace is matched by the new state of the namespace.
    if (request.subresource === '' && object !== undefined) return object;
    if (request.old !== undefined) return request.old;
  } else if (!kind.definition.namespaced) return undefined;
  const name = kind.definition.namespaced ? request.namespace : request.name;
  const found = source.cached(name) ?? (await source.stored(name));
  if (found === undefined) throw errors.notFound({ group: '', plural: 'namespaces' }, name);
  return found.shared();
}

/** The value of `namespaceObject` in policies: undefined for cluster-scoped objects and for namespaces themselves. */
export async function knownNamespace(
  request: AdmissionRequest,
  source: NamespaceSource,
): Promise<KubeObject | undefined> {
  return request.kind.definition.namespaced ? await namespaceOf(request, source) : undefined;
}

function matchesObject(spec: MatchSpec, request: AdmissionRequest): boolean {
  if (isEverything(spec.objects)) return true;
  const labelled = (object: unknown): boolean => {
    const labels = (object as KubeObject | undefined)?.metadata?.labels;
    return object !== undefined && matchesLabels(spec.objects, labels ?? {});
  };
  if (request.bodyKind !== undefined) return labelled(request.body) || labelled(request.oldBody);
  return labelled(request.object) || labelled(request.old);
}

const REGISTRATION = 'admissionregistration.k8s.io';
const REVIEWS: ReadonlySet<string> = new Set(['authentication.k8s.io', 'authorization.k8s.io']);

/**
 * Reports whether the request is exempt from webhooks and policies. Their configurations are exempt, because a faulty
 * webhook could not be repaired otherwise. Derived requests are exempt, because the original request was admitted.
 */
export function isExempt({ kind, derived }: AdmissionRequest): boolean {
  return kind.definition.group === REGISTRATION || derived === true;
}

/**
 * Reports whether the request is exempt from policies. Policies also skip authentication and authorization reviews,
 * which webhooks receive.
 */
export function isExemptOfPolicies(request: AdmissionRequest): boolean {
  const { group, isComputed } = request.kind.definition;
  return isExempt(request) || (isComputed === true && REVIEWS.has(group));
}
