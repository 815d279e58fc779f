/** ValidatingAdmissionPolicy: rules in the cluster's own words. Source: k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go. */
import type {
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from 'kubernetes-types/admissionregistration/v1';
import type { JsonObject, JsonValue, KubeObject } from '../../../../api/meta/object.ts';
import { ApiError, type StatusReason } from '../../../../api/meta/status.ts';
import { messageOf } from '../../../../base/errors.ts';
import type { Kinds, ServedKind } from '../../rest/kinds.ts';
import type { CachedObject } from '../../watchcache/cached-object.ts';
import type { KindCache } from '../../watchcache/kind-cache.ts';
import { documentsOf } from '../expressions.ts';
import type { AdmissionPlugin, AdmissionRequest } from '../index.ts';
import { isExempt, matchRules, mayMatch, type NamespaceSource, namespaceOf, selects } from '../matching.ts';
import { describeRequest } from '../review.ts';
import { forbid } from '../subject.ts';
import { type Binding, compileBinding, compilePolicy, type Policy } from './compile.ts';
import { type Failure, judge } from './judge.ts';
import { paramsOf } from './params.ts';

const FAILURE_KEY = 'validation.policy.admission.k8s.io/validation_failure';

interface Sources {
  policies(): KindCache;
  bindings(): KindCache;
  kinds(): Kinds;
  readonly namespaces: NamespaceSource;
}

interface Bound {
  readonly policy: Policy;
  readonly bindings: readonly Binding[];
}

export function validatingPolicies(sources: Sources): AdmissionPlugin {
  const present = new BoundPolicies(sources);
  return {
    name: 'ValidatingAdmissionPolicy',
    takesBodies: true,
    validate(request) {
      const concerned = present.concerned(request);
      if (concerned.length === 0 || isExempt(request)) return;
      return judgeAll(concerned, request, sources);
    },
  };
}

/** Compiled once for each change of a policy, and sought out once for each sort of request. */
class BoundPolicies {
  readonly #sources: Sources;
  readonly #policies = new WeakMap<CachedObject, Policy>();
  readonly #bindings = new WeakMap<CachedObject, Binding>();
  #bound: readonly Bound[] = [];
  #seen = '';
  #concerned = new WeakMap<ServedKind, Map<string, readonly Bound[]>>();

  constructor(sources: Sources) {
    this.#sources = sources;
  }

  concerned(request: AdmissionRequest): readonly Bound[] {
    const policies = this.#sources.policies();
    const bindings = this.#sources.bindings();
    if (policies.size === 0 || bindings.size === 0) return [];
    const kinds = this.#sources.kinds();
    const state = `${policies.lastChange} ${bindings.lastChange} ${kinds.generation}`;
    if (state !== this.#seen) {
      this.#seen = state;
      this.#concerned = new WeakMap();
      this.#bound = this.#bind(policies, bindings);
    }
    let ofKind = this.#concerned.get(request.kind);
    if (ofKind === undefined) {
      ofKind = new Map();
      this.#concerned.set(request.kind, ofKind);
    }
    const key = `${request.operation} ${request.subresource}`;
    let found = ofKind.get(key);
    if (found === undefined) {
      found = this.#bound.filter(({ policy }) => mayMatch(policy.match, request, kinds));
      ofKind.set(key, found);
    }
    return found;
  }

  #bind(policies: KindCache, bindings: KindCache): Bound[] {
    const compiled = bindings
      .list(undefined)
      .map((object) =>
        remembered(this.#bindings, object, () => compileBinding(object.parse<ValidatingAdmissionPolicyBinding>())),
      );
    return policies.list(undefined).flatMap((object) => {
      const own = compiled.filter(({ policyName }) => policyName === object.name);
      if (own.length === 0) return [];
      const make = (): Policy => compilePolicy(object.parse<ValidatingAdmissionPolicy>());
      return [{ policy: remembered(this.#policies, object, make), bindings: own }];
    });
  }
}

function remembered<T>(known: WeakMap<CachedObject, T>, object: CachedObject, make: () => T): T {
  let value = known.get(object);
  if (value === undefined) {
    value = make();
    known.set(object, value);
  }
  return value;
}

interface Denial {
  readonly message: string;
  readonly reason: string | undefined;
}

async function judgeAll(concerned: readonly Bound[], request: AdmissionRequest, sources: Sources): Promise<void> {
  const denials: Denial[] = [];
  const audited: JsonObject[] = [];
  const namespace = await namespaceOf(request, sources.namespaces);
  for (const { policy, bindings } of concerned) {
    const as = matchRules(policy.match, request, sources.kinds());
    if (as === undefined || !(await selects(policy.match, request, sources.namespaces))) continue;
    const documents = documentsOf(await describeRequest(request, as, ''));
    for (const binding of bindings) {
      if (!(await isBound(binding, request, sources))) continue;
      for (const failure of await failuresOf(policy, binding, request, sources, documents, namespace)) {
        enact(policy, binding, failure, request, denials, audited);
      }
    }
  }
  if (audited.length > 0) request.annotate?.(FAILURE_KEY, JSON.stringify(audited));
  const [first] = denials;
  if (first !== undefined) throw refusal(request, first);
}

async function isBound(binding: Binding, request: AdmissionRequest, sources: Sources): Promise<boolean> {
  const { match } = binding;
  if (match === undefined) return true;
  // Without rules of its own, a binding takes what the policy takes.
  const every = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] };
  const rules = binding.hasRules ? match : { ...match, rules: [every] };
  return (
    matchRules(rules, request, sources.kinds()) !== undefined && (await selects(match, request, sources.namespaces))
  );
}

type DocumentsOfRequest = ReturnType<typeof documentsOf>;

async function failuresOf(
  policy: Policy,
  binding: Binding,
  request: AdmissionRequest,
  sources: Sources,
  documents: DocumentsOfRequest,
  namespace: KubeObject | undefined,
): Promise<Failure[]> {
  let params: readonly (KubeObject | undefined)[];
  try {
    params = await paramsOf(policy, binding, request, sources.kinds());
  } catch (error) {
    if (policy.ignoresFailure) return [];
    return [{ message: `failed to configure binding: ${messageOf(error)}`, reason: undefined, index: undefined }];
  }
  return params.flatMap((param) => {
    const { failures, annotations } = judge(policy, {
      ...documents,
      params: param as JsonValue | undefined,
      namespaceObject: namespace as JsonValue | undefined,
    });
    for (const [key, value] of annotations) request.annotate?.(key, value);
    return failures;
  });
}

function enact(
  policy: Policy,
  binding: Binding,
  { message, reason, index }: Failure,
  request: AdmissionRequest,
  denials: Denial[],
  audited: JsonObject[],
): void {
  const which = `'${policy.name}' with binding '${binding.name}'`;
  for (const action of binding.actions) {
    if (action === 'Deny') {
      denials.push({ message: `ValidatingAdmissionPolicy ${which} denied request: ${message}`, reason });
    } else if (action === 'Warn') {
      request.warnings.push(`Validation failed for ValidatingAdmissionPolicy ${which}: ${message}`);
    } else {
      audited.push({
        message,
        policy: policy.name,
        binding: binding.name,
        expressionIndex: index ?? 0,
        validationActions: [...binding.actions],
      });
    }
  }
}

/** As upstream: worded as a refusal, with the reason that the policy gives. */
function refusal(request: AdmissionRequest, { message, reason = 'Invalid' }: Denial): ApiError {
  const worded = forbid(request, message);
  return new ApiError(reason as StatusReason, worded.message, { ...worded.details, causes: [{ message }] });
}
