/** Requests to the API server with the user's token. */
import { type Decoded, decodeJson, list, object, optional, text as string } from '../../base/decode.ts';
import { serverClock } from './clock.ts';
import { currentToken, renewToken, sessionState } from './login.ts';

/** The fields of a Status that the console uses. */
const STATUS = object({
  message: optional(string),
  reason: optional(string),
  details: optional(object({ causes: optional(list(object({ field: optional(string), message: optional(string) }))) })),
});
type Status = Decoded<typeof STATUS>;

/** A response with an error status. The message is the API server's. */
export class ApiFailure extends Error {
  readonly code: number;
  readonly reason: string;
  readonly status: Status;

  constructor(code: number, status: Status) {
    super(status.message ?? `the API server answered with status ${code}`);
    this.code = code;
    this.reason = status.reason ?? '';
    this.status = status;
  }
}

const WEBSOCKET_TOKEN = 'base64url.bearer.authorization.k8s.io.';

/**
 * Sends a request and returns its response, even if its status is an error. `path` begins with `/`. After a 401 the
 * function gets a new token through the session and repeats the request once; bodies must therefore not be streams.
 */
export async function request(path: string, options: RequestInit = {}): Promise<Response> {
  const send = async (): Promise<Response> => {
    const headers = new Headers(options.headers);
    const token = currentToken();
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
    // Cookies are only sent to the OAuth server.
    const target = sameOrigin(path);
    const answer = await fetch(target, {
      cache: 'no-store',
      ...options,
      credentials: 'omit',
      redirect: 'error',
      headers,
    });
    serverClock.observe(answer.headers.get('date'));
    return answer;
  };
  const used = currentToken();
  const first = await send();
  if (first.status !== 401 || sessionState.value !== 'in') return first;
  // Another request may have renewed the token in the meantime.
  return currentToken() !== used || (await renewToken()) ? send() : first;
}

/** Sends a request and returns the JSON of its response. Throws ApiFailure for an error status. */
export async function requestJson<T>(path: string, options: RequestInit = {}): Promise<T> {
  const headers = new Headers(options.headers);
  if (!headers.has('accept')) headers.set('accept', 'application/json');
  const answer = await request(path, { ...options, headers });
  if (!answer.ok) throw await failureOf(answer);
  return (await answer.json()) as T;
}

/** Converts a response with an error status to an error. Reads the body of the response. */
export async function failureOf(answer: Response): Promise<ApiFailure> {
  const text = await answer.text();
  try {
    return new ApiFailure(answer.status, decodeJson(STATUS, text, 'status'));
  } catch {
    return new ApiFailure(answer.status, text === '' ? {} : { message: text.slice(0, 1000) });
  }
}

export interface FileOptions {
  readonly signal: AbortSignal;
  /** Called with the number of bytes sent so far. */
  onSent(bytes: number): void;
}

/**
 * Sends a file with POST and returns the text of the response. XMLHttpRequest is used, because fetch does not report
 * the progress of uploads. After a 401 the request is repeated once with a new token. Throws ApiFailure for an error
 * status.
 */
export async function sendFile(path: string, file: Blob, options: FileOptions): Promise<string> {
  const used = currentToken();
  let answer = await sendOnce(path, file, options);
  if (answer.status === 401 && (currentToken() !== used || (await renewToken())))
    answer = await sendOnce(path, file, options);
  if (!answer.ok) throw await failureOf(answer);
  return answer.text();
}

function sendOnce(path: string, file: Blob, { signal, onSent }: FileOptions): Promise<Response> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const sending = new XMLHttpRequest();
    sending.open('POST', sameOrigin(path));
    const token = currentToken();
    if (token !== undefined) sending.setRequestHeader('authorization', `Bearer ${token}`);
    sending.setRequestHeader('content-type', 'application/octet-stream');
    const abort = (): void => sending.abort();
    signal.addEventListener('abort', abort, { once: true });
    sending.upload.onprogress = ({ loaded }) => onSent(loaded);
    sending.onload = () => resolve(new Response(sending.responseText, { status: sending.status }));
    sending.onerror = () => reject(new Error('the connection was lost; upload the file again'));
    sending.onabort = () => reject(signal.reason);
    sending.onloadend = () => signal.removeEventListener('abort', abort);
    sending.send(file);
  });
}

/** Opens a WebSocket; the token is sent as a subprotocol, because browsers cannot set headers of WebSockets. */
export function openSocket(path: string, protocols: readonly string[]): WebSocket {
  const url = new URL(sameOrigin(path));
  url.protocol = 'wss:';
  const token = currentToken();
  const encoded =
    token === undefined
      ? []
      : [WEBSOCKET_TOKEN + btoa(token).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')];
  return new WebSocket(url, [...protocols, ...encoded]);
}

/** URL of a path on this server. Throws for other servers, which must not receive the token. */
function sameOrigin(path: string): string {
  const url = new URL(path, location.origin);
  if (!path.startsWith('/') || url.origin !== location.origin) throw new Error(`${path}: is not a path of this server`);
  return url.href;
}
