/** Requests of `/metrics/history`. */
import { HistoryQueryError } from '../history/core/query.ts';
import type { UsageRecorder } from '../history/recorder.ts';
import { HttpError } from './http-error.ts';
import type { KubeletResponse } from './port.ts';

/** Time after which the response yields to other work of the process. */
const TURN_MS = 5;

/** Sends the response in pieces. Throws HttpError 400 with the invalid parameter, and 404 without a history. */
export async function sendHistory(
  response: KubeletResponse,
  history: Pick<UsageRecorder, 'answer'> | undefined,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<void> {
  if (history === undefined) throw new HttpError(404, 'metrics/history: this kubelet keeps no history');
  let pieces: Generator<string>;
  let piece: IteratorResult<string>;
  try {
    pieces = history.answer(query);
    piece = pieces.next();
  } catch (error) {
    if (error instanceof HistoryQueryError) throw new HttpError(400, error.message);
    throw error;
  }
  response.writeHead(200, { 'content-type': 'application/json', 'x-content-type-options': 'nosniff' });
  let sinceMs = performance.now();
  for (; piece.done !== true && !signal.aborted; piece = pieces.next()) {
    if (!response.write(piece.value)) await drained(response, signal);
    if (performance.now() - sinceMs < TURN_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    sinceMs = performance.now();
  }
  response.end();
}

function drained(response: KubeletResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      signal.removeEventListener('abort', done);
      resolve();
    };
    response.once('drain', done);
    signal.addEventListener('abort', done, { once: true });
  });
}
