/** Reads metrics from an HTTP endpoint of this host. */
import { request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { CodedError } from '../../base/errors.ts';

export interface Endpoint {
  readonly url: string;
  /** CA certificate and client certificate with key (PEM), for https. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

const MAX_BYTES = 16 * 1024 * 1024;

/** Reads the metrics. Rejects with CodedError 'scrape-failed' if the status is not 200 or the text exceeds 16 MiB. */
export function scrapeEndpoint({ url, tls }: Endpoint, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const failed = (what: string): void => reject(new CodedError('scrape-failed', `${url}: ${what}`));
    const request = url.startsWith('https:') ? requestTls : requestPlain;
    // A new connection for each scrape, because the components close idle connections before the next scrape.
    const outgoing = request(url, { ...tls, signal, agent: false, headers: { accept: 'text/plain' } }, (response) => {
      const chunks: Buffer[] = [];
      let length = 0;
      response.on('data', (chunk: Buffer) => {
        length += chunk.length;
        if (length <= MAX_BYTES) chunks.push(chunk);
        else outgoing.destroy(new Error(`more than ${MAX_BYTES} bytes`));
      });
      response.on('error', (error) => failed(error.message));
      response.on('end', () => {
        if (response.statusCode === 200) resolve(Buffer.concat(chunks).toString('utf8'));
        else failed(`status ${response.statusCode}`);
      });
    });
    outgoing.on('error', (error) => failed(error.message));
    outgoing.end();
  });
}
