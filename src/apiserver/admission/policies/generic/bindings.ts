/** Bindings of admission policies: where a policy applies, and with which parameters. */

import type { ParamRef, ValidatingAdmissionPolicyBinding } from '../../../../api/generated/admissionregistration/v1.ts';
import type { AdmissionRequest } from '../../../pipeline/admission.ts';
import type { Kinds } from '../../../pipeline/kinds.ts';
import { compileMatch, type MatchSpec, matchRules, type NamespaceSource, selectsRequest } from '../../matching.ts';

export interface Binding {
  readonly name: string;
  readonly policyName: string;
  readonly match: MatchSpec | undefined;
  /** False: the binding has no rules of its own and applies to all requests that the policy matches. */
  readonly hasRules: boolean;
  readonly paramRef: ParamRef | undefined;
  /** Validation actions on failure. Bindings of mutating policies have no actions. */
  readonly actions: readonly string[];
}

export function compileBinding(binding: ValidatingAdmissionPolicyBinding): Binding {
  const spec = binding.spec ?? {};
  const match = spec.matchResources;
  return {
    name: binding.metadata?.name ?? '',
    policyName: spec.policyName ?? '',
    match: match === undefined ? undefined : compileMatch({ ...match, rules: match.resourceRules }),
    hasRules: (match?.resourceRules ?? []).length > 0,
    paramRef: spec.paramRef,
    actions: spec.validationActions ?? [],
  };
}

/** A binding without rules applies to everything that the policy matches. */
const EVERYTHING = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] };

export async function isBound(
  binding: Binding,
  request: AdmissionRequest,
  kinds: Kinds,
  namespaces: NamespaceSource,
): Promise<boolean> {
  const { match } = binding;
  if (match === undefined) return true;
  const rules = binding.hasRules ? match : { ...match, rules: [EVERYTHING] };
  return matchRules(rules, request, kinds) !== undefined && (await selectsRequest(match, request, namespaces));
}
