/** Sends log records over HTTP to a receiver for OTLP or Loki. Redirects are not followed. */
import { type IncomingMessage, Agent as PlainAgent, request as requestPlain } from 'node:http';
import { request as requestTls, Agent as TlsAgent } from 'node:https';
import { anything, decodeJson, object, optional } from '../../base/decode.ts';
import { messageOf } from '../../base/errors.ts';
import { lokiBody, otlpBody } from '../core/encoders.ts';
import type { Receiver, SendResult } from '../port.ts';

export interface HttpReceiverOptions {
  readonly type: 'otlp' | 'loki';
  readonly url: string;
  readonly node: string;
  /** Returns the trusted CA certificates (PEM). Called for each new connection. */
  readonly authorities: () => Promise<readonly string[]>;
  /** Returns the headers from the private headers file. Rejects if the file is invalid. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>;
  readonly nowMs: () => number;
}

const REQUEST_MS = 30_000;
const MAX_ANSWER = 64 * 1024;
const PATHS = { otlp: '/v1/logs', loki: '/loki/api/v1/push' } as const;
/** Maximum of the delay that a receiver can request with Retry-After. */
const MAX_RETRY_AFTER_MS = 300_000;

export function createHttpReceiver(options: HttpReceiverOptions): Receiver {
  const url = new URL(options.url);
  if (url.pathname === '/') url.pathname = PATHS[options.type];
  const isTls = url.protocol === 'https:';
  const agent = isTls
    ? new TlsAgent({ keepAlive: true, maxSockets: 1 })
    : new PlainAgent({ keepAlive: true, maxSockets: 1 });
  return {
    async send(records, signal) {
      const body =
        options.type === 'otlp' ? otlpBody(records, options.node, options.nowMs()) : lokiBody(records, options.node);
      try {
        const headers = { 'content-type': 'application/json', ...(await options.headers()) };
        const tls = isTls ? { ca: [...(await options.authorities())] } : {};
        const answer = await new Promise<{ readonly status: number; readonly text: string; readonly after: string }>(
          (resolve, reject) => {
            const outgoing = (isTls ? requestTls : requestPlain)(
              url,
              {
                method: 'POST',
                agent,
                headers,
                ...tls,
                signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
              },
              (response) => {
                textOf(response).then(
                  (text) =>
                    resolve({ status: response.statusCode ?? 0, text, after: response.headers['retry-after'] ?? '' }),
                  reject,
                );
              },
            );
            outgoing.on('error', reject);
            outgoing.end(body);
          },
        );
        return resultOf(answer, options.type);
      } catch (error) {
        return { kind: 'retry', problem: `${url.origin}: ${messageOf(error)}` };
      }
    },
    close: () => agent.destroy(),
  };
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>)
    if (text.length < MAX_ANSWER) text += chunk;
  return text;
}

/**
 * Statuses after which the same request can never succeed, so its records are dropped. After other statuses it is
 * retried, because the configuration may be corrected.
 */
const FINAL = new Set([400, 413, 415, 422]);

function resultOf(
  { status, text, after }: { readonly status: number; readonly text: string; readonly after: string },
  type: 'otlp' | 'loki',
): SendResult {
  if (status >= 200 && status < 300) return { kind: 'sent', rejected: type === 'otlp' ? rejectedOf(text) : 0 };
  const problem = `status ${status}${text === '' ? '' : `: ${text.slice(0, 200)}`}`;
  if (FINAL.has(status)) return { kind: 'refused', problem };
  const seconds = Number(after);
  return after !== '' && seconds > 0
    ? { kind: 'retry', problem, afterMs: Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) }
    : { kind: 'retry', problem };
}

/** Fields of the response. The count is a string in JSON, because it is a 64-bit number. */
const ANSWER = object({ partialSuccess: optional(object({ rejectedLogRecords: optional(anything) })) });

/** Number of records that an OTLP receiver has rejected, according to `partialSuccess` in its response. */
function rejectedOf(text: string): number {
  try {
    const count = Number(
      decodeJson(ANSWER, text === '' ? '{}' : text, 'answer').partialSuccess?.rejectedLogRecords ?? 0,
    );
    return Number.isSafeInteger(count) && count > 0 ? count : 0;
  } catch {
    // The status shows that the records were accepted, so a response in another format is ignored.
    return 0;
  }
}
