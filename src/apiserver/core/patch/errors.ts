import type { JsonValue } from '../../../api/meta/object.ts';
import { ApiError } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';

export function badPatch(message: string): ApiError {
  return new ApiError('BadRequest', message);
}

/** Error of a patch of the wrong JSON type, in the wording of Go's decoder. `type`: Go type. */
export function wrongPatchType(patch: JsonValue, type: string): ApiError {
  const found = Array.isArray(patch) ? 'array' : typeof patch === 'boolean' ? 'bool' : typeof patch;
  return badPatch(`error decoding patch: json: cannot unmarshal ${found} into Go value of type ${type}`);
}

/**
 * Error of an applied configuration that does not fit its kind. As upstream, it has no reason and the code of an
 * internal error.
 */
export function untyped(message: string): ApiError {
  return new ApiError('Unknown', message);
}

/**
 * Error of a valid patch that does not fit this object. The text is in the message, not in a cause, because kubectl
 * prints a cause without a field as `: text` and omits the message.
 */
export function unprocessable(message: string): ApiError {
  return new ApiError('Invalid', `${REJECTED}${message}`);
}

const REJECTED = 'the server rejected our request due to an error in our request: ';

/** Message without the prefix that addresses clients, for patches that do not come from a client. */
export function reasonOf(error: unknown): string {
  const message = messageOf(error);
  return message.startsWith(REJECTED) ? message.slice(REJECTED.length) : message;
}

class FailedTest extends ApiError {}

export function failedTest(pointer: string): ApiError {
  return new FailedTest('Invalid', `${REJECTED}testing value ${JSON.stringify(pointer)} failed: test failed`);
}

export function isFailedTest(error: unknown): boolean {
  return error instanceof FailedTest;
}

export function tooLarge(message: string): ApiError {
  return new ApiError('RequestEntityTooLarge', message);
}
