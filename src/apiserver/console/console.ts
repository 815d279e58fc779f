/**
 * Static files of the web console below `/console/`. They contain nothing about the cluster, so anonymous clients may
 * read them; all data of the console comes from requests with the user's own token.
 */
import { gunzip } from 'node:zlib';
import type { HttpRequest, HttpResponse } from '../port.ts';
import type { ConsoleManifest } from './manifest.ts';

/** The console as it is stored in the executable. */
export interface ConsoleFiles {
  readonly manifest: ConsoleManifest;
  /** Gzip data of all files, concatenated. */
  readonly contents: Uint8Array;
}

const BASE = '/console';
const INDEX = 'index.html';
const ASSETS = 'assets/';
/** Assets never change, because their file names contain a hash of their content. */
const IMMUTABLE = 'public, max-age=31536000, immutable';
const SECURITY = {
  // Plots and terminals set styles as DOM properties, which the policy permits.
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
    "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
} as const;

export class Console {
  readonly #load: () => ConsoleFiles | undefined;
  /** Files of the console. Undefined before the first request, null if this build has no console. */
  #files: ConsoleFiles | null | undefined;

  /** `load` is called on the first request, so that an unused console needs no memory. */
  constructor(load: () => ConsoleFiles | undefined) {
    this.#load = load;
  }

  handles(path: string): boolean {
    return path === BASE || path.startsWith(`${BASE}/`);
  }

  /**
   * Reports whether a browser requests the server's address without a path; the response redirects it to the console.
   * Other clients get the list of API paths at `/`.
   */
  leadsTo(path: string, { method, headers }: HttpRequest): boolean {
    if (path !== '/' || method !== 'GET' || !/\btext\/html\b/.test(headers.accept ?? '')) return false;
    this.#files ??= this.#load() ?? null;
    return this.#files !== null;
  }

  answer(path: string, request: HttpRequest, response: HttpResponse): void {
    for (const [name, value] of Object.entries(SECURITY)) response.setHeader(name, value);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      end(response, 405);
      return;
    }
    if (path === BASE || path === '/') {
      response.setHeader('location', `${BASE}/`);
      end(response, path === BASE ? 308 : 302);
      return;
    }
    this.#files ??= this.#load() ?? null;
    const wanted = path.slice(BASE.length + 1);
    // Every other path is a view inside the single page, which index.html loads.
    const name = wanted.startsWith(ASSETS) ? wanted : INDEX;
    const file = this.#files?.manifest.files.find((each) => each.name === name);
    if (this.#files === null || file === undefined) {
      end(response, 404);
      return;
    }
    const etag = `"${file.etag}"`;
    response.setHeader('etag', etag);
    response.setHeader('cache-control', name === INDEX ? 'no-cache' : IMMUTABLE);
    response.setHeader('vary', 'accept-encoding');
    if (matches(request.headers['if-none-match'], etag)) {
      end(response, 304);
      return;
    }
    response.setHeader('content-type', file.type);
    const body = this.#files.contents.subarray(file.offset, file.offset + file.length);
    const send = (bytes: Uint8Array): void => {
      response.setHeader('content-length', bytes.length);
      response.statusCode = 200;
      response.end(request.method === 'HEAD' ? undefined : bytes);
    };
    if (acceptsGzip(request.headers['accept-encoding'])) {
      response.setHeader('content-encoding', 'gzip');
      send(body);
    } else gunzip(body, (error, plain) => (error === null ? send(plain) : end(response, 500)));
  }
}

function end(response: HttpResponse, status: number): void {
  response.statusCode = status;
  if (status !== 304) response.setHeader('content-length', 0);
  response.end();
}

const matches = (header: string | undefined, etag: string): boolean =>
  header?.split(',').some((each) => each.trim().replace(/^W\//, '') === etag) === true;

/** Reports whether the client accepts gzip with a weight above 0. */
const acceptsGzip = (header: string | string[] | undefined): boolean =>
  String(header ?? '')
    .split(',')
    .some((each) => /^\s*(?:gzip|\*)\s*(?:;\s*q=(?:1(?:\.0*)?|0\.0*[1-9]\d*))?\s*$/i.test(each));
