import { ApiError } from '../api/meta/status.ts';
import { messageOf } from '../base/errors.ts';

/**
 * No answer came from the server: refused, reset, timed out, or not the server we trust. It is a 'ServiceUnavailable'
 * to callers; the class tells it apart from a server that answered 503. Whether a write took effect is unknown.
 */
export class ConnectionError extends ApiError {
  constructor(server: string, cause: unknown) {
    super('ServiceUnavailable', `${server}: ${describe(cause)}`);
    this.name = 'ConnectionError';
    this.cause = cause;
  }
}

/** True when the failure is one of the connection, not the answer of a server. */
export function isConnectionError(error: unknown): error is ConnectionError {
  return error instanceof ConnectionError;
}

/** Connecting to a name with several addresses fails with an AggregateError whose own message is empty. */
function describe(cause: unknown): string {
  if (cause instanceof AggregateError && cause.message === '') {
    const messages = cause.errors.map(messageOf);
    return [...new Set(messages)].join('; ');
  }
  return messageOf(cause);
}
