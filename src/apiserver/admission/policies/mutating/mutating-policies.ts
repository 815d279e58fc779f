/**
 * MutatingAdmissionPolicy. Sources: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go,
 * pkg/admission/plugin/policy/generic/policy_dispatcher.go.
 */

import type { Value } from '../../../../api/cel/values.ts';
import { jsonEqual } from '../../../../api/meta/equality.ts';
import type { JsonObject, JsonValue, KubeObject } from '../../../../api/meta/object.ts';
import { ApiError, isApiError } from '../../../../api/meta/status.ts';
import { schemaOf } from '../../../../api/schema/index.ts';
import { messageOf } from '../../../../base/errors.ts';
import type { AdmissionRequest } from '../../../pipeline/admission.ts';
import type { ServedKind } from '../../../pipeline/kinds.ts';
import type { AdmissionPlugin, Mutation as Pass } from '../../admission.ts';
import { authorizerOf, evaluateWithDecisions } from '../../authorizer.ts';
import { exchangeObject, targetOf } from '../../exchange.ts';
import { CostBudget, conditionsHold, documentsOf, MAX_POLICY_COST, variablesOf } from '../../expressions.ts';
import { isExemptOfPolicies, knownNamespace, matchRules, selectsRequest } from '../../matching.ts';
import { describeRequest } from '../../review.ts';
import { forbid } from '../../subject.ts';
import { type Binding, isBound } from '../generic/bindings.ts';
import { type Bound, BoundPolicies, type PolicySources } from '../generic/bound-policies.ts';
import { composedVariables, type Expression, evaluateOne } from '../generic/composition.ts';
import { PolicyMetrics } from '../generic/metrics.ts';
import { paramKindProblem, paramsOf } from '../generic/params.ts';
import { compileMutating, type MutatingPolicy, type Mutation } from './compile.ts';
import { withConfiguration, withPatches } from './patch.ts';

export function mutatingPolicies(sources: PolicySources): AdmissionPlugin {
  const present = new BoundPolicies(sources, (object) => compileMutating(object.parse()));
  const metrics = new PolicyMetrics(sources.metrics, 'mutating');
  return {
    name: 'MutatingAdmissionPolicy',
    takesBodies: true,
    mutate(request, pass) {
      const concerned = present.matching(request);
      if (concerned.length === 0 || isExemptOfPolicies(request)) return;
      return new Dispatch(sources, metrics, request, pass).run(concerned);
    },
  };
}

/** A policy with one of its bindings and one parameter of that binding. */
interface Invocation {
  readonly policy: MutatingPolicy;
  readonly binding: Binding;
  readonly as: ServedKind;
  readonly param: KubeObject | undefined;
}

interface Failed {
  readonly message: string;
  /**
   * True if no evaluation took place, because the policy or its binding does not fit the served kinds or parameters.
   */
  readonly misconfigured: boolean;
}

class Dispatch {
  readonly #sources: PolicySources;
  readonly #metrics: PolicyMetrics;
  readonly #request: AdmissionRequest;
  readonly #pass: Pass;
  readonly #authorizer: ReturnType<typeof authorizerOf>;
  readonly #errors: Failed[] = [];
  /** True if at least one mutation ran, even if it did not change the object. */
  #made = false;
  #namespace: KubeObject | undefined;

  constructor(sources: PolicySources, metrics: PolicyMetrics, request: AdmissionRequest, pass: Pass) {
    this.#sources = sources;
    this.#metrics = metrics;
    this.#request = request;
    this.#pass = pass;
    this.#authorizer = authorizerOf(request, sources.access);
  }

  /** Runs the policies. Throws an ApiError with all failures that are not ignored. */
  async run(concerned: readonly Bound<MutatingPolicy>[]): Promise<void> {
    this.#namespace = await knownNamespace(this.#request, this.#sources.namespaces);
    await this.#request.noteOwners?.();
    for (const invocation of await this.#invocations(concerned)) await this.#invoke(invocation);
    if (this.#made) {
      // As upstream, every policy with reinvocation runs again and sees the result of all mutations, even the last
      // policy, whose own mutation was the last change.
      this.#pass.changed = true;
      for (const seen of this.#pass.seen) if (typeof seen === 'string') this.#pass.due.add(seen);
    }
    const [first] = this.#errors;
    if (first === undefined) return;
    const { details, httpCode } = forbid(this.#request, first.message);
    throw new ApiError(
      first.misconfigured ? 'Forbidden' : 'Invalid',
      first.message,
      { ...details, causes: this.#errors.map(({ message }) => ({ message })) },
      httpCode,
    );
  }

  #failed(
    policy: MutatingPolicy,
    binding: Binding | undefined,
    message: string,
    { misconfigured = false }: { readonly misconfigured?: boolean } = {},
  ): void {
    if (policy.ignoresFailure) return;
    const which = binding === undefined ? `"${policy.name}"` : `'${policy.name}' with binding '${binding.name}'`;
    this.#errors.push({ message: `policy ${which} denied request: ${message}`, misconfigured });
  }

  /** Determines all invocations before the first mutation, so that a mutation does not decide which policies match. */
  async #invocations(concerned: readonly Bound<MutatingPolicy>[]): Promise<Invocation[]> {
    const found: Invocation[] = [];
    const { kinds, namespaces } = this.#sources;
    for (const { policy, bindings } of concerned) {
      const as = matchRules(policy.match, this.#request, kinds());
      if (as === undefined || !(await selectsRequest(policy.match, this.#request, namespaces))) continue;
      const problem = paramKindProblem(policy, kinds());
      if (problem !== undefined) {
        this.#failed(policy, undefined, problem, { misconfigured: true });
        continue;
      }
      for (const binding of bindings) {
        if (!(await isBound(binding, this.#request, kinds(), namespaces))) continue;
        try {
          const params = await paramsOf(policy, binding, this.#request, kinds());
          for (const param of params) found.push({ policy, binding, as, param });
        } catch (error) {
          this.#failed(policy, binding, `failed to configure binding: ${messageOf(error)}`, { misconfigured: true });
        }
      }
    }
    return found;
  }

  async #invoke(invocation: Invocation): Promise<void> {
    const { policy, binding } = invocation;
    const pass = this.#pass;
    const key = keyOf(invocation);
    try {
      if (!(await this.#isMeant(invocation))) return;
    } catch (error) {
      this.#failed(policy, binding, messageOf(error));
      return;
    }
    if (pass.again && !pass.due.has(key)) return;
    for (const mutation of targetOf(this.#request) === undefined ? [] : policy.mutations) {
      const began = this.#sources.nowMs();
      const done = (wrong: string | undefined): void => {
        const seconds = (this.#sources.nowMs() - began) / 1000;
        this.#metrics.record({ policy: policy.name, binding: binding.name, wrong, seconds });
      };
      try {
        if (await this.#mutate(invocation, mutation)) for (const seen of pass.seen) pass.due.add(seen);
        this.#made = true;
        done(undefined);
      } catch (error) {
        done(messageOf(error));
        if (isApiError(error)) throw error;
        this.#failed(policy, binding, messageOf(error));
      }
    }
    if (policy.reinvoked) pass.seen.add(key);
  }

  async #isMeant({ policy, as, param }: Invocation): Promise<boolean> {
    if (policy.conditions.length === 0) return true;
    try {
      // Match conditions have no `namespaceObject`.
      const variables = this.#variables(await describeRequest(this.#request, as, ''), param, undefined);
      return await evaluateWithDecisions(() => conditionsHold(policy.conditions, variables));
    } catch (error) {
      // A policy with failurePolicy Ignore does not apply if its conditions cannot be evaluated.
      if (policy.ignoresFailure) return false;
      throw error;
    }
  }

  /** Variables of expressions for a request in the form `described`. */
  #variables(
    described: JsonObject,
    param: KubeObject | undefined,
    namespace: KubeObject | undefined,
  ): ReturnType<typeof variablesOf> {
    return variablesOf(
      {
        ...documentsOf(described),
        params: param as JsonValue | undefined,
        namespaceObject: namespace as JsonValue | undefined,
      },
      this.#authorizer,
    );
  }

  /**
   * Runs one mutation and returns whether it changed the object. Throws an ApiError when the request must be rejected,
   * and an Error when the mutation failed.
   */
  async #mutate({ policy, as, param }: Invocation, { type, expression }: Mutation): Promise<boolean> {
    const described = await describeRequest(this.#request, as, '');
    const live = described['object'] as JsonObject;
    const value = await evaluateWithDecisions(() => this.#evaluate(policy, expression, described, param));
    const { bodyKind } = this.#request;
    const schema = bodyKind === undefined ? as.schema : schemaOf(bodyKind);
    const next = type === 'JSONPatch' ? withPatches(live, value) : withConfiguration(live, value, schema);
    if (jsonEqual(live, next)) return false;
    await this.#exchange(as, next, type);
    return true;
  }

  *#evaluate(
    policy: MutatingPolicy,
    expression: Expression,
    described: JsonObject,
    param: KubeObject | undefined,
  ): Generator<undefined, Value> {
    const budget = new CostBudget(MAX_POLICY_COST);
    const variables = composedVariables(policy, this.#variables(described, param, this.#namespace), budget);
    const value = evaluateOne(expression, variables, budget);
    if (budget.isTurnOver()) yield;
    return value;
  }

  async #exchange(as: ServedKind, next: JsonObject, type: Mutation['type']): Promise<void> {
    // As upstream, unknown fields are errors in built-in kinds and are pruned from custom resources.
    const strict = type === 'JSONPatch' && as.definition.custom === undefined;
    try {
      await exchangeObject(this.#request, as, next, strict ? 'Strict' : 'Ignore');
    } catch (error) {
      if (type === 'JSONPatch') {
        throw new ApiError('InternalError', `Internal error occurred: ${messageOf(error)}`);
      }
      throw new Error(`error applying patch: ${messageOf(error)}`, { cause: error });
    }
  }
}

const keyOf = ({ policy, binding, param }: Invocation): string =>
  `policy/${policy.name}/${binding.name}/${param?.metadata?.namespace ?? ''}/${param?.metadata?.name ?? ''}`;
