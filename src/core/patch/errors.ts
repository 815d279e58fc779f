import { ApiError } from '../../api/meta/status.ts';

/** The patch itself is malformed. */
export function badPatch(message: string): ApiError {
  return new ApiError('BadRequest', message);
}

/**
 * The patch is well-formed but does not fit this object. What is wrong is in the message and not in a cause: kubectl prints a cause
 * without a field as `: text` and then leaves the message out.
 */
export function unprocessable(message: string): ApiError {
  return new ApiError('Invalid', `the server rejected our request due to an error in our request: ${message}`);
}

export function tooLarge(message: string): ApiError {
  return new ApiError('RequestEntityTooLarge', message);
}
