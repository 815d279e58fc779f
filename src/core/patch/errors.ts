import { ApiError } from '../../api/meta/status.ts';

/** The patch itself is malformed. */
export function badPatch(message: string): ApiError {
  return new ApiError('BadRequest', message);
}

/** The patch is well-formed but does not fit this object; kubectl shows the message, other clients read the cause. */
export function unprocessable(message: string): ApiError {
  return new ApiError('Invalid', 'the server rejected our request due to an error in our request', {
    causes: [{ reason: 'UnexpectedServerResponse', message }],
  });
}

export function tooLarge(message: string): ApiError {
  return new ApiError('RequestEntityTooLarge', message);
}
