import type { JsonValue } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import { messageOf } from '../../base/errors.ts';

/** The patch itself is malformed. */
export function badPatch(message: string): ApiError {
  return new ApiError('BadRequest', message);
}

/** What was sent in a patch's place, in the words of who reads it into a value of Go's `type`. */
export function wrongPatchType(patch: JsonValue, type: string): ApiError {
  const found = Array.isArray(patch) ? 'array' : typeof patch === 'boolean' ? 'bool' : typeof patch;
  return badPatch(`error decoding patch: json: cannot unmarshal ${found} into Go value of type ${type}`);
}

/**
 * An applied configuration is not what its kind is made of. Upstream has no reason for it, and answers as for an error
 * of its own.
 */
export function untyped(message: string): ApiError {
  return new ApiError('Unknown', message);
}

/**
 * The patch is well-formed but does not fit this object. What is wrong is in the message and not in a cause: kubectl
 * prints a cause without a field as `: text` and then leaves the message out.
 */
export function unprocessable(message: string): ApiError {
  return new ApiError('Invalid', `${REJECTED}${message}`);
}

const REJECTED = 'the server rejected our request due to an error in our request: ';

/** Errors of a patch that no client sent: without the advice for clients. */
export function reasonOf(error: unknown): string {
  const message = messageOf(error);
  return message.startsWith(REJECTED) ? message.slice(REJECTED.length) : message;
}

class FailedTest extends ApiError {}

/** A `test` operation did not hold. */
export function failedTest(pointer: string): ApiError {
  return new FailedTest('Invalid', `${REJECTED}testing value ${JSON.stringify(pointer)} failed: test failed`);
}

export function isFailedTest(error: unknown): boolean {
  return error instanceof FailedTest;
}

export function tooLarge(message: string): ApiError {
  return new ApiError('RequestEntityTooLarge', message);
}
