import { ApiError } from '../api/meta/status.ts';
import { messageOf } from '../base/errors.ts';

/**
 * Thrown if the server has sent no response: the connection was refused, was reset or timed out, or the server is not
 * trusted. The reason is 'ServiceUnavailable'; the class distinguishes it from a 503 response. A write may or may not
 * have taken effect.
 */
export class ConnectionError extends ApiError {
  constructor(server: string, cause: unknown) {
    super('ServiceUnavailable', `${server}: ${describe(cause)}`);
    this.name = 'ConnectionError';
    this.cause = cause;
  }
}

/** Whether the error is a connection failure instead of a response from the server. */
export function isConnectionError(error: unknown): error is ConnectionError {
  return error instanceof ConnectionError;
}

/** Message of an error. For a name with several addresses, Node throws an AggregateError with an empty message. */
function describe(cause: unknown): string {
  if (cause instanceof AggregateError && cause.message === '') {
    const messages = cause.errors.map(messageOf);
    return [...new Set(messages)].join('; ');
  }
  return messageOf(cause);
}
