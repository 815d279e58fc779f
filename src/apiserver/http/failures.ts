/** Maps errors to the `Status` of the response. */
import { ApiError } from '../../api/meta/status.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { StoreError, type StoreErrorCode } from '../../store/port.ts';

const STORE_FAILURES: Readonly<Record<StoreErrorCode, (error: StoreError) => ApiError>> = {
  compacted: () =>
    new ApiError('Expired', 'The provided resource version is too old: the store no longer has its history.'),
  'future-revision': (error) =>
    new ApiError('Timeout', `Too large resource version: ${error.message}`, {
      retryAfterSeconds: 1,
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    }),
  // No Retry-After is set: clients would retry silently, although an administrator must act on the message.
  'no-space': () =>
    new ApiError(
      'ServiceUnavailable',
      "the store is out of disk space: writes are rejected, reads continue; free space under the store's data directory",
    ),
  'too-large': (error) =>
    new ApiError('RequestEntityTooLarge', `the object is too large for the store: ${error.message}`),
  'too-many-requests': () =>
    new ApiError('TooManyRequests', 'the store is busy, please try again later', { retryAfterSeconds: 1 }),
  unavailable: (error) =>
    new ApiError('ServiceUnavailable', `the store is unavailable: ${error.message}`, { retryAfterSeconds: 1 }),
  timeout: (error) => new ApiError('Timeout', `the store did not answer in time: ${error.message}`),
  'lease-not-found': (error) => new ApiError('InternalError', `Internal error occurred: ${error.message}`),
  internal: (error) => new ApiError('InternalError', `Internal error occurred: ${error.message}`),
};

/** Converts a thrown value to a response. `unexpected` is true for a bug, which the caller logs. */
export function failureOf(error: unknown): { readonly failure: ApiError; readonly unexpected: boolean } {
  if (error instanceof ApiError) return { failure: error, unexpected: false };
  if (error instanceof StoreError) return { failure: STORE_FAILURES[error.code](error), unexpected: false };
  if (error instanceof CodedError) {
    if (error.code === 'selector-invalid') {
      return { failure: new ApiError('BadRequest', error.message), unexpected: false };
    }
    if (error.code === 'address-refused') {
      return { failure: new ApiError('Forbidden', error.message), unexpected: false };
    }
    if (error.code === 'connect-failed' || error.code === 'aborted') {
      return {
        failure: new ApiError('ServiceUnavailable', `error trying to reach service: ${error.message}`),
        unexpected: false,
      };
    }
  }
  return { failure: new ApiError('InternalError', `Internal error occurred: ${messageOf(error)}`), unexpected: true };
}
