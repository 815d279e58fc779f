/** Match conditions of authorization webhooks. Source: k8s.io/apiserver/pkg/authorization/cel, KEP-3221. */

import { Budget } from '../../api/cel/compiled-expression.ts';
import { ANY_READER, fromJson } from '../../api/cel/documents.ts';
import { compile } from '../../api/cel/language/compile.ts';
import { standardFunctions } from '../../api/cel/library/index.ts';
import { listOf, mapOf, STRING, structureOf, type Type } from '../../api/cel/types.ts';
import type { JsonObject } from '../../api/meta/object.ts';
import { messageOf } from '../../base/errors.ts';

/** Upstream's cost limits of one expression and of all expressions of a webhook. */
const MAX_CALL_COST = 1_000_000;
const MAX_COST = 2_500_000;

const texts = (...names: string[]): Record<string, Type> => Object.fromEntries(names.map((name) => [name, STRING]));

/** Type of a selector: its raw text and its requirements. */
const selector = (name: string): Type =>
  structureOf(`kubernetes.${name}SelectorAttributes`, {
    rawSelector: STRING,
    requirements: listOf(
      structureOf(`kubernetes.${name}SelectorRequirement`, { ...texts('key', 'operator'), values: listOf(STRING) }),
    ),
  });

const REQUEST = structureOf('kubernetes.SubjectAccessReviewSpec', {
  resourceAttributes: structureOf('kubernetes.ResourceAttributes', {
    ...texts('namespace', 'verb', 'group', 'version', 'resource', 'subresource', 'name'),
    fieldSelector: selector('Field'),
    labelSelector: selector('Label'),
  }),
  nonResourceAttributes: structureOf('kubernetes.NonResourceAttributes', texts('path', 'verb')),
  user: STRING,
  groups: listOf(STRING),
  extra: mapOf(STRING, listOf(STRING)),
  uid: STRING,
});

export interface AccessConditions {
  /** Reports whether all conditions are true. Throws an Error if a condition fails and no condition is false. */
  hold(spec: JsonObject): boolean;
}

/** Compiles the conditions. Throws an Error with the index of the expression that does not compile. */
export function compileAccessConditions(expressions: readonly string[]): AccessConditions {
  const programs = expressions.map((source, index) => {
    try {
      const program = compile(source, { functions: standardFunctions(), variables: new Map([['request', REQUEST]]) });
      if (program.type.kind !== 'bool' && program.type.kind !== 'dyn') throw new Error('must evaluate to bool');
      return { source, program };
    } catch (error) {
      throw new Error(`matchConditions[${index}].expression: ${messageOf(error)}`, { cause: error });
    }
  });
  return {
    hold(spec) {
      const document = fromJson(complete(spec), ANY_READER);
      const failures: string[] = [];
      let left = MAX_COST;
      for (const { source, program } of programs) {
        const budget = new Budget(Math.min(MAX_CALL_COST, Math.max(left, 0)));
        const started = budget.left;
        try {
          if (program.evaluate(() => document, budget) !== true) return false;
        } catch (error) {
          failures.push(`cel evaluation error: expression '${source}' resulted in '${messageOf(error)}'`);
        }
        left -= started - Math.max(budget.left, 0);
      }
      if (failures.length > 0) throw new Error(failures.join(', '));
      return true;
    },
  };
}

const RESOURCE = { namespace: '', verb: '', group: '', version: '', resource: '', subresource: '', name: '' };

/** Fills in empty values as upstream does. Resource attributes and non-resource attributes may be absent. */
function complete(spec: JsonObject): JsonObject {
  const { resourceAttributes, ...rest } = spec;
  return {
    uid: '',
    extra: {},
    ...rest,
    ...(resourceAttributes === undefined
      ? {}
      : { resourceAttributes: { ...RESOURCE, ...(resourceAttributes as JsonObject) } }),
  };
}
