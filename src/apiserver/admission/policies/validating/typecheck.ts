/**
 * Type checks a policy's expressions against the kinds that it matches. The findings are only warnings: kinds may
 * change, and rules may match more kinds. Source:
 * k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go.
 */

import { typeOfNode, typeOfPublished } from '../../../../api/cel/kind-types.ts';
import { DYN, type Type } from '../../../../api/cel/types.ts';
import type { ValidatingAdmissionPolicy } from '../../../../api/generated/admissionregistration/v1.ts';
import { schemaOfType } from '../../../../api/schema/index.ts';
import type { Kinds, ServedKind } from '../../../pipeline/kinds.ts';
import { compileExpression, explainProblem } from '../../expressions.ts';
import { gvkText, typeOfVariable } from '../generic/composition.ts';

export interface ExpressionWarning {
  readonly fieldRef: string;
  readonly warning: string;
}

const MAX_KINDS = 10;

/**
 * Type problems of the policy's validations. `pause` is awaited after each expression and kind, because a policy may
 * have many expressions and kinds.
 */
export async function typeCheck(
  policy: ValidatingAdmissionPolicy,
  kinds: Kinds,
  pause: () => Promise<void>,
): Promise<ExpressionWarning[]> {
  const spec = policy.spec ?? {};
  const written = (spec.validations ?? []).flatMap(({ expression, messageExpression }, index) => {
    const at = `spec.validations[${index}]`;
    const main = { at: `${at}.expression`, source: expression };
    return (messageExpression ?? '') === ''
      ? [main]
      : [main, { at: `${at}.messageExpression`, source: messageExpression ?? '' }];
  });
  const found = new Map<string, string[]>();
  for (const kind of matchedKinds(policy, kinds)) {
    const variables = await variablesFor(kind, policy, kinds, pause);
    for (const { at, source } of written) {
      await pause();
      const problem = problemOf(source, variables);
      if (problem === undefined) continue;
      const all = found.get(at) ?? [];
      found.set(at, [...all, `${gvkText(kind)}: ${problem}\n`]);
    }
  }
  return written.flatMap(({ at }) => {
    const problems = found.get(at);
    return problems === undefined ? [] : [{ fieldRef: at, warning: problems.join('\n') }];
  });
}

type Variables = readonly (readonly [string, Type])[];

function problemOf(source: string, variables: Variables): string | undefined {
  try {
    compileExpression(source, 'checked', variables);
    return undefined;
  } catch (error) {
    return explainProblem(error).replace(/^compilation failed: /, '');
  }
}

async function variablesFor(
  kind: ServedKind,
  policy: ValidatingAdmissionPolicy,
  kinds: Kinds,
  pause: () => Promise<void>,
): Promise<Variables> {
  const object = typeOfKind(kind);
  const { paramKind, variables = [] } = policy.spec ?? {};
  const param = kinds.all.find((each) => each.apiVersion === paramKind?.apiVersion && each.kind === paramKind.kind);
  const given: (readonly [string, Type])[] = [
    ['object', object],
    ['oldObject', object],
    ...(paramKind === undefined ? [] : [['params', param === undefined ? DYN : typeOfKind(param)] as const]),
  ];
  const fields = new Map<string, Type>();
  const composed = (): Variables => [
    ...given,
    ['variables', { kind: 'object', name: 'kubernetes.variables', fields: new Map(fields) }],
  ];
  for (const { name, expression } of variables) {
    await pause();
    fields.set(name, typeOf(expression, composed()));
  }
  return composed();
}

const META = schemaOfType('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta');

function typeOfKind({ kind, schema, definition: { custom } }: ServedKind): Type {
  if (custom !== undefined && META !== undefined) return typeOfPublished(custom.openapi(3), kind, META) ?? DYN;
  return (schema === undefined ? undefined : typeOfNode(schema, kind)) ?? DYN;
}

/** A variable that does not compile has the dynamic type, so that expressions that use it report no error. */
function typeOf(source: string, variables: Variables): Type {
  try {
    return typeOfVariable(compileExpression(source, 'checked', variables).type);
  } catch {
    return DYN;
  }
}

interface Rule {
  readonly apiGroups?: readonly string[];
  readonly apiVersions?: readonly string[];
  readonly resources?: readonly string[];
}

/** Kinds that the rules name, sorted by group, version and kind. Rules with `*` are skipped. */
function matchedKinds(policy: ValidatingAdmissionPolicy, kinds: Kinds): ServedKind[] {
  const named = (values: readonly string[] = []): readonly string[] =>
    values.some((each) => each.includes('*')) ? [] : [...values].sort();
  const found = new Set<ServedKind>();
  for (const rule of (policy.spec?.matchConstraints?.resourceRules ?? []) as readonly Rule[]) {
    const resources = (rule.resources ?? []).filter((each) => !/[*/]/.test(each)).sort();
    for (const group of named(rule.apiGroups)) {
      for (const version of named(rule.apiVersions)) {
        for (const resource of resources) {
          const kind = kinds.at(group, version, resource);
          if (kind !== undefined && found.size < MAX_KINDS) found.add(kind);
        }
      }
    }
  }
  const key = ({ group, version, kind }: ServedKind): string => `${group}\n${version}\n${kind}`;
  return [...found].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}
