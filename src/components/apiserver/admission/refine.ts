/** The kinds that hold expressions about requests, completed by what only this server can check: that they can be compiled. */
import type { MatchCondition } from 'kubernetes-types/admissionregistration/v1';
import { type FieldError, fieldError } from '../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import type { KindDefinition } from '../../../api/registry/definition.ts';
import { messageOf } from '../../../base/errors.ts';
import { compileExpression, type Expected } from './expressions.ts';

interface Written {
  readonly at: string;
  readonly source: string;
  readonly expected: Expected;
}

const conditionsAt = (conditions: readonly MatchCondition[] | undefined, path: string): Written[] =>
  (conditions ?? []).map(({ expression }, index) => ({
    at: `${path}[${index}].expression`,
    source: expression,
    expected: 'bool',
  }));

function webhookExpressions(object: KubeObject): Written[] {
  const { webhooks } = object as { webhooks?: { matchConditions?: MatchCondition[] }[] };
  return (webhooks ?? []).flatMap(({ matchConditions }, index) =>
    conditionsAt(matchConditions, `webhooks[${index}].matchConditions`),
  );
}

const READERS: Readonly<Record<string, (object: KubeObject) => Written[]>> = {
  MutatingWebhookConfiguration: webhookExpressions,
  ValidatingWebhookConfiguration: webhookExpressions,
};

/** What was accepted once is not held against an update that leaves it as it is. */
function expressionErrors(read: (object: KubeObject) => Written[], object: KubeObject, old?: KubeObject): FieldError[] {
  const before = new Set(old === undefined ? [] : read(old).map(({ source }) => source));
  return read(object).flatMap(({ at, source, expected }) => {
    if (source.trim() === '' || before.has(source)) return [];
    try {
      compileExpression(source, expected);
      return [];
    } catch (error) {
      return [fieldError.invalid(at, source, `compilation failed: ${messageOf(error)}`)];
    }
  });
}

export function refineAdmissionKind(definition: KindDefinition): KindDefinition {
  const read = definition.group === 'admissionregistration.k8s.io' ? READERS[definition.kind] : undefined;
  if (read === undefined) return definition;
  const { strategy } = definition;
  return {
    ...definition,
    strategy: {
      ...strategy,
      validateCreate: (object) => [...(strategy.validateCreate?.(object) ?? []), ...expressionErrors(read, object)],
      validateUpdate: (object, old) => [
        ...(strategy.validateUpdate?.(object, old) ?? []),
        ...expressionErrors(read, object, old),
      ],
    },
  };
}
