/** Runs a strategy's validation of a write. */
import type { FieldError } from '../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import type { WriteStrategy } from '../../../api/registry/definition.ts';
import { runSteps } from '../event-loop.ts';

/** What a strategy says that takes its time about judging; that it was not asked, where values are of wrong types, too many or missing. */
export async function judgement(
  strategy: Pick<WriteStrategy<KubeObject>, 'judge'>,
  object: KubeObject,
  old: KubeObject | undefined,
  failures: readonly FieldError[],
): Promise<readonly FieldError[]> {
  const steps = strategy.judge?.(object, old);
  if (steps === undefined) return NONE;
  if (failures.some((each) => BLOCKING.has(each.type))) return [NOT_JUDGED];
  return runSteps(steps);
}

const NONE: readonly FieldError[] = [];
/** What makes a value none that an expression could speak of. */
const BLOCKING: ReadonlySet<FieldError['type']> = new Set<FieldError['type']>([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);
const NOT_JUDGED: FieldError = {
  type: 'FieldValueInvalid',
  field: '<nil>',
  message:
    'Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
};
