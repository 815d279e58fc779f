import { request as send } from 'undici';
import { OutboundDispatcher } from '../../../wire/outbound/connection.ts';
import type { OutboundSettings } from '../../../wire/outbound/proxy-choice.ts';
import type { WebPort } from '../port.ts';

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 1 << 20;

/** Sends requests to identity providers, through the configured proxy if there is one. */
export const createWeb = (outbound: OutboundSettings): WebPort => ({
  async request(url, { method, headers, body, ca }) {
    const dispatcher = new OutboundDispatcher(outbound, {
      connectTimeoutMs: TIMEOUT_MS,
      ...(ca === undefined ? {} : { tls: { ca } }),
    });
    try {
      const answer = await send(url, {
        method,
        headers: { ...headers },
        ...(body === undefined ? {} : { body }),
        dispatcher,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const chunks: Buffer[] = [];
      let length = 0;
      for await (const chunk of answer.body) {
        const bytes = chunk as Buffer;
        length += bytes.length;
        if (length > MAX_BYTES) throw new Error(`${url}: answers with more than ${MAX_BYTES} bytes`);
        chunks.push(bytes);
      }
      return { status: answer.statusCode, text: Buffer.concat(chunks).toString('utf8') };
    } finally {
      await dispatcher.destroy();
    }
  },
});
