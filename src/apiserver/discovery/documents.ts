/**
 * Documents that depend only on the served kinds. They are built on the first request and then served as bytes with
 * their digest.
 */
import { createHash } from 'node:crypto';
import type { Exchange } from '../http/exchange.ts';

export interface StaticDocument {
  readonly bytes: Buffer;
  readonly contentType: string;
  /** SHA-512 in upper-case hexadecimal, as upstream's ETags. */
  readonly hash: string;
}

export function staticDocument(bytes: Buffer, contentType = 'application/json'): StaticDocument {
  return { bytes, contentType, hash: createHash('sha512').update(bytes).digest('hex').toUpperCase() };
}

/** Sends the document, or 304 if the client has the same version. */
export function sendDocument(exchange: Exchange, document: StaticDocument, immutable = false): void {
  const { response } = exchange;
  const etag = `"${document.hash}"`;
  response.setHeader('etag', etag);
  response.setHeader('vary', 'Accept');
  const known = exchange.header('if-none-match');
  if (known?.split(',').some((each) => each.trim().replace(/^W\//, '') === etag)) {
    const recorded = exchange.recorded(304);
    if (recorded === undefined) response.writeHead(304).end();
    else void recorded.then(() => response.writeHead(304).end());
    return;
  }
  if (immutable) {
    response.setHeader('expires', new Date(Date.UTC(2100, 0, 1)).toUTCString());
  }
  exchange.sendBytes(200, document.bytes, document.contentType);
}

/** Caches the result of `make` per key. */
export function cachedDocuments<K>(make: (key: K) => StaticDocument): (key: K) => StaticDocument {
  const made = new Map<K, StaticDocument>();
  return (key) => {
    let document = made.get(key);
    if (document === undefined) {
      document = make(key);
      made.set(key, document);
    }
    return document;
  };
}
