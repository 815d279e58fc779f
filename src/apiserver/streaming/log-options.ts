/** Validates pod log options. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidatePodLogOptions. */
import { type FieldError, fieldError, invalid } from '../../api/meta/field-error.ts';
import { errors } from '../../api/meta/status.ts';
import type { ResourceRequestInfo } from '../http/request-info.ts';

const INTEGER = /^[+-]?\d{1,18}$/;

function numberIn({ query }: ResourceRequestInfo, name: string): number | undefined {
  const text = query.get(name) ?? '';
  if (text === '') return undefined;
  if (!INTEGER.test(text))
    throw errors.badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text.slice(0, 64))}: invalid syntax`);
  return Number(text);
}

/**
 * Validates the log options. Throws 'Invalid' with every invalid option, and 'BadRequest' for a value that is not a
 * number.
 */
export function checkLogOptions(info: ResourceRequestInfo): void {
  const [tail, limit, since] = ['tailLines', 'limitBytes', 'sinceSeconds'].map((name) => numberIn(info, name));
  const failures: FieldError[] = [];
  if (tail !== undefined && tail < 0)
    failures.push(fieldError.invalid('tailLines', tail, 'must be greater than or equal to 0'));
  if (limit !== undefined && limit < 1)
    failures.push(fieldError.invalid('limitBytes', limit, 'must be greater than 0'));
  if (since !== undefined && (info.query.get('sinceTime') ?? '') !== '')
    failures.push(fieldError.forbidden('[]', 'at most one of `sinceTime` or `sinceSeconds` may be specified'));
  else if (since !== undefined && since < 1)
    failures.push(fieldError.invalid('sinceSeconds', since, 'must be greater than 0'));
  if (failures.length > 0) throw invalid({ group: '', kind: 'PodLogOptions' }, info.name, failures);
}
