import { messageOf } from '../../base/errors.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { KubeletRequest, KubeletResponse } from './port.ts';
import { TooManySessions } from './sessions.ts';

/** Time for a client to read a refusal while it still sends the body. */
const LINGER_MS = 2_000;

/** Error response with a status code and a line of text, as in upstream. */
export class HttpError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = 'HttpError';
    this.code = code;
  }
}

export function errorAnswer(error: unknown): { readonly code: number; readonly message: string } {
  if (error instanceof TooManySessions) return { code: 429, message: error.message };
  return error instanceof HttpError
    ? { code: error.code, message: error.message }
    : { code: 500, message: messageOf(error) };
}

/**
 * Sends an error response and discards the rest of the body. A connection that is closed while the client sends loses
 * the response, so it stays open until the client has sent the body or closed the connection, at most for `LINGER_MS`.
 * Clients without an identity get no such time.
 */
export function sendRefusal(
  request: KubeletRequest,
  response: KubeletResponse,
  code: number,
  message: string,
  clock: Clock,
): void {
  const body = Buffer.from(`${message}\n`);
  response.writeHead(code, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': body.length,
    'x-content-type-options': 'nosniff',
  });
  if (request.complete || code === 401) response.end(body);
  else {
    response.write(body);
    const timer = clock.setTimer(LINGER_MS, () => response.end());
    const end = (): void => {
      timer.cancel();
      response.end();
    };
    request.once('end', end).once('close', end);
  }
  request.resume();
}

/** The error as a complete HTTP/1.1 response, for a connection that requested an upgrade. */
export function rawErrorAnswer(error: unknown): string {
  const { code, message } = errorAnswer(error);
  const body = `${message}\n`;
  return `HTTP/1.1 ${code} ${REASONS[code] ?? 'Error'}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`;
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
};
