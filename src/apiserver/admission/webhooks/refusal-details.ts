/**
 * Details of a webhook's rejection. Each field is checked for its type, because the details reach headers, protobuf and
 * the audit log; upstream's Go decoder enforces the types. Source: k8s.io/apimachinery/pkg/apis/meta/v1 StatusDetails.
 */
import type { JsonObject, JsonValue } from '../../../api/meta/object.ts';
import type { Status, StatusCause } from '../../../api/meta/status.ts';
import { fieldOf, isObject } from '../../../api/structural/schema.ts';

type Details = NonNullable<Status['details']>;

const MAX_TEXT = 1024;
const MAX_CAUSES = 32;
const MAX_RETRY_SECONDS = 86_400;

/** The details, without fields of a wrong type. Undefined if no field remains. */
export function detailsOf(value: JsonValue | undefined): Details | undefined {
  if (value === undefined || !isObject(value)) return undefined;
  const causes = fieldOf(value, 'causes');
  const retry = fieldOf(value, 'retryAfterSeconds');
  const details: Details = {
    ...texts(value, ['name', 'group', 'kind', 'uid']),
    ...(Array.isArray(causes)
      ? {
          causes: causes
            .slice(0, MAX_CAUSES)
            .filter(isObject)
            .map((cause): StatusCause => texts(cause, ['reason', 'message', 'field'])),
        }
      : {}),
    ...(typeof retry === 'number' && Number.isInteger(retry) && retry > 0
      ? { retryAfterSeconds: Math.min(retry, MAX_RETRY_SECONDS) }
      : {}),
  };
  return Object.keys(details).length === 0 ? undefined : details;
}

function texts<K extends string>(object: JsonObject, names: readonly K[]): { [N in K]?: string } {
  const found: { [N in K]?: string } = {};
  for (const name of names) {
    const value = fieldOf(object, name);
    if (typeof value === 'string') found[name] = value.slice(0, MAX_TEXT);
  }
  return found;
}
