/** ValidatingAdmissionPolicy: rules in the cluster's own words. Source: k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go. */
import type { ValidatingAdmissionPolicy } from 'kubernetes-types/admissionregistration/v1';
import type { JsonObject, JsonValue, KubeObject } from '../../../../../api/meta/object.ts';
import { ApiError, type StatusReason } from '../../../../../api/meta/status.ts';
import { messageOf } from '../../../../../base/errors.ts';
import type { Value } from '../../../../../core/cel/values.ts';
import { authorizerOf, withAnswers } from '../../authorizer.ts';
import { documentsOf, variablesOf } from '../../expressions.ts';
import type { AdmissionPlugin, AdmissionRequest } from '../../index.ts';
import { isExemptOfPolicies, matchRules, namespaceOf, selects } from '../../matching.ts';
import { describeRequest } from '../../review.ts';
import { forbid } from '../../subject.ts';
import { type Binding, isBound } from '../generic/bindings.ts';
import { type Bound, BoundPolicies, type PolicySources } from '../generic/bound.ts';
import { paramsOf } from '../generic/params.ts';
import { compileValidating, type ValidatingPolicy } from './compile.ts';
import { type Failure, judge } from './judge.ts';

const FAILURE_KEY = 'validation.policy.admission.k8s.io/validation_failure';

export function validatingPolicies(sources: PolicySources): AdmissionPlugin {
  const present = new BoundPolicies(sources, (object) => compileValidating(object.parse<ValidatingAdmissionPolicy>()));
  return {
    name: 'ValidatingAdmissionPolicy',
    takesBodies: true,
    validate(request) {
      const concerned = present.concerned(request);
      if (concerned.length === 0 || isExemptOfPolicies(request)) return;
      return judgeAll(concerned, request, sources);
    },
  };
}

interface Denial {
  readonly message: string;
  readonly reason: string | undefined;
}

async function judgeAll(
  concerned: readonly Bound<ValidatingPolicy>[],
  request: AdmissionRequest,
  sources: PolicySources,
): Promise<void> {
  const denials: Denial[] = [];
  const audited: JsonObject[] = [];
  const namespace = await namespaceOf(request, sources.namespaces);
  const authorizer = authorizerOf(request, sources.access);
  for (const { policy, bindings } of concerned) {
    const as = matchRules(policy.match, request, sources.kinds());
    if (as === undefined || !(await selects(policy.match, request, sources.namespaces))) continue;
    const documents = documentsOf(await describeRequest(request, as, ''));
    const variables = (param: KubeObject | undefined): ReturnType<typeof variablesOf> =>
      variablesOf(
        { ...documents, params: param as JsonValue | undefined, namespaceObject: namespace as JsonValue | undefined },
        authorizer,
      );
    for (const binding of bindings) {
      if (!(await isBound(binding, request, sources.kinds(), sources.namespaces))) continue;
      for (const failure of await failuresOf(policy, binding, request, sources, variables)) {
        enact(policy, binding, failure, request, denials, audited);
      }
    }
  }
  if (audited.length > 0) request.annotate?.(FAILURE_KEY, JSON.stringify(audited));
  const [first] = denials;
  if (first !== undefined) throw refusal(request, first);
}

async function failuresOf(
  policy: ValidatingPolicy,
  binding: Binding,
  request: AdmissionRequest,
  sources: PolicySources,
  variables: (param: KubeObject | undefined) => (name: string) => Value,
): Promise<Failure[]> {
  let params: readonly (KubeObject | undefined)[];
  try {
    params = await paramsOf(policy, binding, request, sources.kinds());
  } catch (error) {
    if (policy.ignoresFailure) return [];
    return [{ message: `failed to configure binding: ${messageOf(error)}`, reason: undefined, index: undefined }];
  }
  const found: Failure[] = [];
  for (const param of params) {
    const { failures, annotations } = await withAnswers(() => judge(policy, variables(param)));
    for (const [key, value] of annotations) request.annotate?.(key, value);
    found.push(...failures);
  }
  return found;
}

function enact(
  policy: ValidatingPolicy,
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
