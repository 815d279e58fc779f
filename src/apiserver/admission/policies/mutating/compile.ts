/**
 * Mutating admission policies, compiled. Source: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/compilation.go.
 */
import type { ValidatingAdmissionPolicy } from '../../../../api/generated/admissionregistration/v1.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';
import {
  compileShared,
  type Expression,
  type Policy,
  PolicyCompiler,
  sharedExpressions,
} from '../generic/composition.ts';

export interface Mutation {
  readonly type: 'ApplyConfiguration' | 'JSONPatch';
  readonly expression: Expression;
}

export interface MutatingPolicy extends Policy {
  /** Mutations in the order in which they are applied. */
  readonly mutations: readonly Mutation[];
  /** True if the mutations run again when other plug-ins change the object after them. */
  readonly reinvoked: boolean;
}

/** Declares mutating policies by the types of validating policies, which have most of the fields. */
interface Written extends KubeObject {
  readonly spec?: Omit<NonNullable<ValidatingAdmissionPolicy['spec']>, 'validations'> & {
    readonly reinvocationPolicy?: string;
    readonly mutations?: readonly {
      readonly patchType?: string;
      readonly applyConfiguration?: { readonly expression?: string };
      readonly jsonPatch?: { readonly expression?: string };
    }[];
  };
}

export function compileMutating(object: KubeObject): MutatingPolicy {
  const policy = object as Written;
  const spec = policy.spec ?? {};
  const compiler = new PolicyCompiler(spec);
  return {
    ...compileShared(policy, compiler),
    reinvoked: spec.reinvocationPolicy === 'IfNeeded',
    mutations: (spec.mutations ?? []).map((mutation, index): Mutation => {
      const at = `spec.mutations[${index}]`;
      if (mutation.patchType === 'JSONPatch') {
        const source = mutation.jsonPatch?.expression;
        return { type: 'JSONPatch', expression: compiler.expression(`${at}.jsonPatch.expression`, source, 'patch') };
      }
      const source = mutation.applyConfiguration?.expression;
      const expression = compiler.expression(`${at}.applyConfiguration.expression`, source, 'configuration');
      return { type: 'ApplyConfiguration', expression };
    }),
  };
}

export function mutatingExpressions(policy: MutatingPolicy): Expression[] {
  return [...sharedExpressions(policy), ...policy.mutations.map(({ expression }) => expression)];
}
