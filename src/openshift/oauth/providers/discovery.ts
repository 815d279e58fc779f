/**
 * Reads discovery documents of OpenID providers. They are cached, because anonymous users can trigger logins. Source:
 * OpenID Connect Discovery 1.0.
 */

import { BoundedMap } from '../../../base/bounded-map.ts';
import { decodeJson, fields, own } from '../../../base/decode.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { WebPort } from '../port.ts';

export interface Discovery {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly jwks_uri: string;
}

const KEPT_MS = 60_000;
const MAX_KEPT = 64;
const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost']);
const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const;

export class Discoveries {
  readonly #web: WebPort;
  readonly #clock: Clock;
  readonly #known = new BoundedMap<string, { readonly document: Promise<Discovery>; readonly untilMs: number }>(
    MAX_KEPT,
  );

  constructor(web: WebPort, clock: Clock) {
    this.#web = web;
    this.#clock = clock;
  }

  /** Returns the document. Rejects with an Error that describes the fault; failures are not cached. `ca` is in PEM. */
  get(issuer: string, ca: string | undefined): Promise<Discovery> {
    const key = `${issuer}\n${ca ?? ''}`;
    const nowMs = this.#clock.monotonicMs();
    const known = this.#known.get(key);
    if (known !== undefined && nowMs < known.untilMs) return known.document;
    const document = this.#read(issuer, ca);
    this.#known.set(key, { document, untilMs: nowMs + KEPT_MS });
    document.catch(() => {
      if (this.#known.get(key)?.document === document) this.#known.delete(key);
    });
    return document;
  }

  async #read(issuer: string, ca: string | undefined): Promise<Discovery> {
    if (!isTrusted(issuer)) throw new Error(`issuer ${JSON.stringify(issuer)}: is not an https URL`);
    const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const answer = await this.#web.request(url, { method: 'GET', headers: {}, ca });
    if (answer.status !== 200) throw new Error(`${url}: status ${answer.status}`);
    const document = decodeJson(own<Partial<Discovery>>(fields), answer.text, url);
    // The issuer must be equal to the requested URL (section 4.3).
    if (document.issuer !== issuer) throw new Error(`${url}: issuer is ${JSON.stringify(document.issuer)}`);
    for (const name of ENDPOINTS)
      if (!isTrusted(document[name]))
        throw new Error(`${url}: ${name} is not an https URL: ${JSON.stringify(document[name])}`);
    return document as Discovery;
  }
}

/** Whether the URL uses TLS or a loopback address. Keys and tokens that are sent unencrypted cannot be trusted. */
function isTrusted(text: unknown): boolean {
  if (typeof text !== 'string' || !URL.canParse(text)) return false;
  const { protocol, hostname, username } = new URL(text);
  return username === '' && (protocol === 'https:' || (protocol === 'http:' && LOOPBACK.has(hostname)));
}
