/** ValidatingAdmissionPolicy. Source: k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go. */

import type { ValidatingAdmissionPolicy } from '../../../../api/generated/admissionregistration/v1.ts';
import type { JsonValue, KubeObject } from '../../../../api/meta/object.ts';
import { ApiError, type StatusReason } from '../../../../api/meta/status.ts';
import { messageOf } from '../../../../base/errors.ts';
import type { AdmissionRequest } from '../../../pipeline/admission.ts';
import type { AdmissionPlugin } from '../../admission.ts';
import { authorizerOf, evaluateWithDecisions } from '../../authorizer.ts';
import { type Documents, documentsOf, variablesOf } from '../../expressions.ts';
import { isExemptOfPolicies, knownNamespace, matchRules, selectsRequest } from '../../matching.ts';
import { describeRequest } from '../../review.ts';
import { forbid } from '../../subject.ts';
import { type Binding, isBound } from '../generic/bindings.ts';
import { type Bound, BoundPolicies, type PolicySources } from '../generic/bound-policies.ts';
import type { Policy } from '../generic/composition.ts';
import { PolicyMetrics } from '../generic/metrics.ts';
import { paramKindProblem, paramsOf } from '../generic/params.ts';
import { compileValidating, type ValidatingPolicy } from './compile.ts';
import { evaluatePolicy, type Failure, type Given } from './evaluate.ts';

const FAILURE_KEY = 'validation.policy.admission.k8s.io/validation_failure';
/** Size limit of an audit annotation in bytes. */
const MAX_ANNOTATION = 10 * 1024;

export function validatingPolicies(sources: PolicySources): AdmissionPlugin {
  const present = new BoundPolicies(sources, (object) => compileValidating(object.parse<ValidatingAdmissionPolicy>()));
  const metrics = new PolicyMetrics(sources.metrics, 'validating');
  return {
    name: 'ValidatingAdmissionPolicy',
    takesBodies: true,
    validate(request) {
      const concerned = present.matching(request);
      if (concerned.length === 0 || isExemptOfPolicies(request)) return;
      return new Dispatch(sources, metrics, request).run(concerned);
    },
  };
}

interface Denial {
  readonly message: string;
  readonly reason: string | undefined;
}

type Action = 'deny' | 'audit' | 'warn';
const ACTIONS: Readonly<Record<string, Action>> = { Deny: 'deny', Audit: 'audit', Warn: 'warn' };

class Dispatch {
  readonly #sources: PolicySources;
  readonly #metrics: PolicyMetrics;
  readonly #request: AdmissionRequest;
  readonly #authorizer: ReturnType<typeof authorizerOf>;
  readonly #denials: Denial[] = [];
  #namespace: KubeObject | undefined;
  #isAudited = false;

  constructor(sources: PolicySources, metrics: PolicyMetrics, request: AdmissionRequest) {
    this.#sources = sources;
    this.#metrics = metrics;
    this.#request = request;
    this.#authorizer = authorizerOf(request, sources.access);
  }

  /** Runs the policies. Throws an ApiError for the first failure whose action is `deny`. */
  async run(concerned: readonly Bound<ValidatingPolicy>[]): Promise<void> {
    this.#namespace = await knownNamespace(this.#request, this.#sources.namespaces);
    for (const { policy, bindings } of concerned) {
      const as = matchRules(policy.match, this.#request, this.#sources.kinds());
      if (as === undefined || !(await selectsRequest(policy.match, this.#request, this.#sources.namespaces))) continue;
      const problem = paramKindProblem(policy, this.#sources.kinds());
      if (problem !== undefined) this.#misconfigured(policy, `'${policy.name}'`, problem);
      else await this.#evaluate(policy, bindings, documentsOf(await describeRequest(this.#request, as, '')));
    }
    const [first] = this.#denials;
    if (first !== undefined) throw refusal(this.#request, first);
  }

  #misconfigured(policy: ValidatingPolicy, which: string, problem: string): void {
    if (policy.ignoresFailure) return;
    this.#denials.push({
      message: `ValidatingAdmissionPolicy ${which} denied request: ${problem}`,
      reason: undefined,
    });
  }

  async #evaluate(policy: ValidatingPolicy, bindings: readonly Binding[], documents: Documents): Promise<void> {
    const { kinds, namespaces, nowMs } = this.#sources;
    const annotations = new Map<string, Set<string>>();
    for (const binding of bindings) {
      if (!(await isBound(binding, this.#request, kinds(), namespaces))) continue;
      let params: readonly (KubeObject | undefined)[];
      try {
        params = await paramsOf(policy, binding, this.#request, kinds());
      } catch (error) {
        const problem = `failed to configure binding: ${messageOf(error)}`;
        this.#misconfigured(policy, `'${policy.name}' with binding '${binding.name}'`, problem);
        continue;
      }
      for (const param of params) {
        const given = this.#given(documents, param);
        const result = await evaluateWithDecisions(() => evaluatePolicy(policy, given, nowMs));
        for (const failure of result.ignored) this.#record(policy, binding, failure, 'allow');
        for (const failure of result.failures)
          for (const action of binding.actions) this.#enact(policy, binding, failure, ACTIONS[action] ?? 'deny');
        for (const failure of result.unannotated) this.#enact(policy, binding, failure, 'deny');
        for (const [key, value] of result.annotations) {
          const known = annotations.get(key) ?? new Set();
          annotations.set(key, known.add(Buffer.from(value).subarray(0, MAX_ANNOTATION).toString()));
        }
      }
    }
    for (const [key, values] of annotations) this.#request.annotate?.(`${policy.name}/${key}`, [...values].join(', '));
  }

  #given(documents: Documents, param: KubeObject | undefined): Given {
    const known = { ...documents, params: param as JsonValue | undefined };
    return {
      conditions: variablesOf(known, this.#authorizer),
      others: variablesOf({ ...known, namespaceObject: this.#namespace as JsonValue | undefined }, this.#authorizer),
    };
  }

  #record({ name: policy }: Policy, { name }: Binding, { message, seconds }: Failure, action: Action | 'allow'): void {
    this.#metrics.record({ policy, binding: name, wrong: message, action, seconds });
  }

  #enact(policy: ValidatingPolicy, binding: Binding, failure: Failure, action: Action): void {
    const { message, reason, index } = failure;
    const which = `'${policy.name}' with binding '${binding.name}'`;
    this.#record(policy, binding, failure, action);
    if (action === 'deny') {
      this.#denials.push({ message: `ValidatingAdmissionPolicy ${which} denied request: ${message}`, reason });
    } else if (action === 'warn') {
      this.#request.warnings.push(`Validation failed for ValidatingAdmissionPolicy ${which}: ${message}`);
    } else if (!this.#isAudited) {
      // Only the first failure is recorded in the audit annotation.
      this.#isAudited = true;
      const auditEntry = { message, policy: policy.name, binding: binding.name, expressionIndex: index };
      this.#request.annotate?.(FAILURE_KEY, escapedJson([{ ...auditEntry, validationActions: [...binding.actions] }]));
    }
  }
}

/** JSON as Go's encoder writes it, with HTML characters escaped. */
const escapedJson = (value: JsonValue): string =>
  JSON.stringify(value).replaceAll(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** Rejection in upstream's wording, with the reason of the policy. */
function refusal(request: AdmissionRequest, { message, reason = 'Invalid' }: Denial): ApiError {
  const worded = forbid(request, message);
  return new ApiError(reason as StatusReason, worded.message, { ...worded.details, causes: [{ message }] });
}
