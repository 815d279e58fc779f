/** Sends a file of the host as a download. */
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '../../base/time/clock.ts';
import type { KubeletResponse } from './port.ts';

/** Time after which a download without progress is ended, because the number of downloads is limited. */
const STALL_MS = 60_000;
export const NO_SNIFF = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' };

/** An open file whose name needs no quoting. */
export interface SentFile {
  readonly name: string;
  readonly bytes: number;
  readonly content: Readable;
  close(): void;
}

/** Sends the file as a download. Closes the file in any case. */
export async function sendFile(
  response: KubeletResponse,
  { name, bytes, content, close }: SentFile,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const stall = new AbortController();
  let timer = clock.setTimer(STALL_MS, () => stall.abort());
  content.on('data', () => {
    timer.cancel();
    timer = clock.setTimer(STALL_MS, () => stall.abort());
  });
  content.pause();
  try {
    response.writeHead(200, {
      ...NO_SNIFF,
      'content-type': 'application/octet-stream',
      'content-length': bytes,
      'content-disposition': `attachment; filename="${name}"`,
    });
    // A response that ends early is destroyed, so that it never looks complete.
    await pipeline(content, response, { signal: AbortSignal.any([signal, stall.signal]) });
  } finally {
    timer.cancel();
    close();
  }
}

export function sendPrivateJson(response: KubeletResponse, body: object): void {
  response.writeHead(200, { ...NO_SNIFF, 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
