/**
 * Requires permission to read the parameters of admission policies. A policy copies fields of its parameters into
 * messages, so without this check a user who may write policies could read every Secret. Source:
 * k8s.io/kubernetes/pkg/registry/admissionregistration, where the check is part of the strategies of the kinds.
 */

import type { ParamRef } from '../../../../api/generated/admissionregistration/v1.ts';
import { semanticEqual } from '../../../../api/meta/equality.ts';
import { fieldError, invalid } from '../../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';
import type { AdmissionRequest } from '../../../pipeline/admission.ts';
import type { Kinds } from '../../../pipeline/kinds.ts';
import type { CachedObject } from '../../../watch-cache/cached-object.ts';
import type { AdmissionPlugin } from '../../admission.ts';
import type { AccessSource } from '../../authorizer.ts';
import type { ParamKind } from './composition.ts';
import { kindOfParams } from './params.ts';

const GROUP = 'admissionregistration.k8s.io';

/** Kinds of bindings, with the kind of the policies that they name. */
const POLICY_OF_BINDING: ReadonlyMap<string, string> = new Map([
  ['validatingadmissionpolicybindings', 'validatingadmissionpolicies'],
  ['mutatingadmissionpolicybindings', 'mutatingadmissionpolicies'],
]);

interface ParameterFields {
  readonly paramKind?: ParamKind;
  readonly policyName?: string;
  readonly paramRef?: ParamRef;
}

export interface ReadableParamSources {
  readonly kinds: () => Kinds;
  readonly access: AccessSource;
  /** A policy from the watch cache. `plural` is the kind of the policy. */
  policy(plural: string, name: string): CachedObject | undefined;
}

export function readablePolicyParams({ kinds, access, policy }: ReadableParamSources): AdmissionPlugin {
  /** The most specific resource that is known for the kind. */
  const resourceOf = (param: ParamKind | undefined) => {
    if (param === undefined) return { group: '*', version: '*', resource: '*' };
    const parts = param.apiVersion.split('/');
    const [group, version] = parts.length === 1 ? ['', parts[0]] : parts;
    const resource = kindOfParams(param, kinds())?.plural ?? '*';
    return { group: group ?? '', version: version ?? '', resource };
  };
  const mayRead = async (request: AdmissionRequest, param: ParamKind | undefined, namespace: string, name: string) => {
    const action = { verb: 'get', ...resourceOf(param), subresource: '', namespace, name };
    return (await access.authorize(request.user, action)).allowed;
  };
  return {
    name: 'PolicyParameters',
    resources: [...POLICY_OF_BINDING].flat().map((plural) => `${plural}.${GROUP}`),
    async validate(request) {
      if (request.object === undefined) return;
      const now = fieldsOf(request.object);
      const before = fieldsOf(request.old);
      const policies = POLICY_OF_BINDING.get(request.kind.plural);
      const { paramKind, paramRef, policyName } = now;
      if (policies === undefined) {
        if (paramKind === undefined || semanticEqual(paramKind, before.paramKind)) return;
        if (await mayRead(request, paramKind, '*', '*')) return;
        const { kind, apiVersion } = paramKind;
        const objects = `all objects of the referenced paramKind (kind=${kind}, apiVersion=${apiVersion})`;
        throw refusal(request, 'spec.paramKind', `must have "get" permission on ${objects}`);
      }
      const isKnown = semanticEqual(paramRef, before.paramRef) && policyName === before.policyName;
      if (paramRef === undefined || isKnown) return;
      const param = fieldsOf(policy(policies, policyName ?? '')?.shared()).paramKind;
      if (await mayRead(request, param, paramRef.namespace ?? '', paramRef.name ?? '')) return;
      throw refusal(request, 'spec.paramRef', 'does not have "get" permission on the object referenced by paramRef');
    },
  };
}

function fieldsOf(object: KubeObject | undefined): ParameterFields {
  return (object as { readonly spec?: ParameterFields } | undefined)?.spec ?? {};
}

function refusal(request: AdmissionRequest, field: string, why: string): Error {
  const found = fieldError.forbidden(field, `user ${JSON.stringify(request.user.name)} ${why}`);
  return invalid(request.kind.definition, request.object?.metadata?.name ?? request.name, [found]);
}
