/**
 * CORS and HSTS headers. Source: k8s.io/apiserver/pkg/server/filters, cors.go and hsts.go.
 */
import { compileRegexp, type Regexp } from '../../base/regexp/index.ts';
import type { HttpRequest, HttpResponse } from '../port.ts';

export interface BrowserSettings {
  /** Patterns of allowed CORS origins, in RE2 syntax. */
  readonly allowedOrigins?: readonly string[];
  readonly transportSecurity?: string;
}

const NO_CONTENT = 204;
const MAX_ORIGIN = 2048;
const ALLOWED = {
  'Access-Control-Allow-Methods': 'POST, GET, OPTIONS, PUT, DELETE, PATCH',
  'Access-Control-Allow-Headers':
    'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since',
  'Access-Control-Expose-Headers': 'Date',
  'Access-Control-Allow-Credentials': 'true',
} as const;

export class Browsers {
  readonly #origins: readonly Regexp[];
  readonly #transportSecurity: string | undefined;

  /** Throws an Error for an invalid pattern. */
  constructor({ allowedOrigins = [], transportSecurity }: BrowserSettings) {
    this.#origins = allowedOrigins.map(compileRegexp);
    this.#transportSecurity = transportSecurity;
  }

  /** Sets the CORS and HSTS headers. Returns true if the request was a preflight and needs no further response. */
  answer({ method, headers: { origin } }: HttpRequest, response: HttpResponse): boolean {
    if (this.#transportSecurity !== undefined) response.setHeader('Strict-Transport-Security', this.#transportSecurity);
    if (origin === undefined || origin.length > MAX_ORIGIN || !this.#origins.some((each) => each.test(origin)))
      return false;
    response.setHeader('Access-Control-Allow-Origin', origin);
    for (const [name, value] of Object.entries(ALLOWED)) response.setHeader(name, value);
    if (method !== 'OPTIONS') return false;
    response.writeHead(NO_CONTENT).end();
    return true;
  }
}
