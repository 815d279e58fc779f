import { messageOf } from '../../base/errors.ts';
import { TooManySessions } from './sessions.ts';

/** Error response with a status code and a line of text, as upstream. */
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
