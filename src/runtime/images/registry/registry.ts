/**
 * Client of the Docker Registry HTTP API v2 / OCI distribution specification, for pulling manifests and blobs, with
 * basic and bearer token authentication. Every response is verified against its digest.
 */

import type { Readable } from 'node:stream';
import { type Dispatcher, request } from 'undici';
import { messageOf } from '../../../base/errors.ts';
import { contentDigest } from '../../../wire/digest.ts';
import { OutboundDispatcher } from '../../../wire/outbound/connection.ts';
import { DIRECT, type OutboundSettings } from '../../../wire/outbound/proxy-choice.ts';
import { type RegistryAuth, RuntimeError } from '../../port.ts';
import { MAX_DOCUMENT_BYTES, objectOf, parseObject } from '../image-config.ts';
import type { ImageReference } from '../reference.ts';

const MANIFEST_TYPES = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');
const MAX_REDIRECTS = 5;
const MAX_CHALLENGE = 8192;
const CONNECT_TIMEOUT_MS = 5_000;
const HEADERS_TIMEOUT_MS = 20_000;
const BODY_IDLE_TIMEOUT_MS = 30_000;

export interface RegistryOptions {
  /** Registries with plain HTTP, as `host` or `host:port`. Loopback addresses are always included. */
  readonly insecureRegistries: readonly string[];
  /** Mirrors of registries, which are tried first: `docker.io` → `mirror.lab:5000`. */
  readonly mirrors: Readonly<Record<string, readonly string[]>>;
  /** Repository names at the mirrors of a registry. The first matching pattern is used. */
  readonly rewrites?: Readonly<Record<string, readonly Rewrite[]>>;
  /** Credentials and trust, by host. */
  readonly hosts?: Readonly<Record<string, RegistryHost>>;
  /** Proxy and authorities of the host. */
  readonly outbound?: OutboundSettings;
  /** Milliseconds without a byte after which a download is interrupted. Default 30,000. */
  readonly idleTimeoutMs?: number;
}

export interface Rewrite {
  readonly pattern: RegExp;
  readonly replacement: string;
}

export interface RegistryHost {
  readonly auth?: RegistryAuth;
  /** PEM. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Disables the verification of the server's certificate. */
  readonly skipVerify?: boolean;
}

const own = <T>(table: Readonly<Record<string, T>> | undefined, key: string): T | undefined =>
  table !== undefined && Object.hasOwn(table, key) ? table[key] : undefined;

/** The repository name of an image at a mirror. */
export function pathAtMirror({ domain, path }: ImageReference, { rewrites }: RegistryOptions): string {
  const rules = own(rewrites, domain) ?? own(rewrites, '*') ?? [];
  const rule = rules.find(({ pattern }) => pattern.test(path));
  return rule === undefined ? path : path.replace(rule.pattern, rule.replacement);
}

const ownHost = (domain: string): string => (domain === 'docker.io' ? 'registry-1.docker.io' : domain);

/** Hosts to try for an image, in this order: the registry's mirrors, then the registry itself. */
export function hostsOf({ domain }: ImageReference, { mirrors }: RegistryOptions): readonly string[] {
  return [...(own(mirrors, domain) ?? own(mirrors, '*') ?? []), ownHost(domain)];
}

export interface RegistryClient {
  /** `reference` is a tag or a digest. */
  manifest(reference: string): Promise<{ readonly digest: string; readonly bytes: Buffer }>;
  /** A small blob as a whole. */
  document(digest: string): Promise<Buffer>;
  /** The bytes of a blob from `from`. A server without range support sends the whole blob (200). */
  blob(digest: string, from: number): Promise<Dispatcher.ResponseData>;
  close(): Promise<void>;
}

export function createRegistryClient(
  reference: ImageReference,
  host: string,
  auth: RegistryAuth | undefined,
  options: RegistryOptions,
): RegistryClient {
  return new HttpRegistryClient(reference, host, auth, options);
}

class HttpRegistryClient implements RegistryClient {
  readonly #reference: ImageReference;
  readonly #auth: RegistryAuth | undefined;
  /** Whether plain HTTP is allowed, because the registry is configured as insecure or is on this host. */
  readonly #plain: boolean;
  readonly #base: string;
  readonly #agent: OutboundDispatcher;
  #authorization: string | undefined;

  constructor(reference: ImageReference, host: string, auth: RegistryAuth | undefined, options: RegistryOptions) {
    this.#reference = reference;
    const settings = own(options.hosts, host);
    this.#auth = auth ?? settings?.auth;
    this.#plain =
      options.insecureRegistries.includes(host) || /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(host);
    const path = host === ownHost(reference.domain) ? reference.path : pathAtMirror(reference, options);
    this.#base = `${this.#plain ? 'http' : 'https'}://${host}/v2/${path}`;
    const { ca, cert, key, skipVerify = false } = settings ?? {};
    this.#agent = new OutboundDispatcher(options.outbound ?? DIRECT, {
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      tls: {
        rejectUnauthorized: !skipVerify,
        ...(ca === undefined ? {} : { ca }),
        ...(cert === undefined || key === undefined ? {} : { cert, key }),
      },
      headersTimeout: HEADERS_TIMEOUT_MS,
      bodyTimeout: options.idleTimeoutMs ?? BODY_IDLE_TIMEOUT_MS,
      connections: 4,
    });
  }

  async manifest(wanted: string): Promise<{ readonly digest: string; readonly bytes: Buffer }> {
    const bytes = await this.#document(`${this.#base}/manifests/${wanted}`, MANIFEST_TYPES);
    const digest = this.#digestOf(bytes);
    if (wanted.startsWith('sha256:') && digest !== wanted)
      throw this.#failed('image-pull', `the manifest's digest is ${digest} instead of ${wanted}`);
    return { digest, bytes };
  }

  async document(digest: string): Promise<Buffer> {
    const bytes = await this.#document(`${this.#base}/blobs/${digest}`, '*/*');
    if (this.#digestOf(bytes) !== digest)
      throw this.#failed('image-pull', `blob ${digest} has digest ${this.#digestOf(bytes)}`);
    return bytes;
  }

  blob(digest: string, from: number): Promise<Dispatcher.ResponseData> {
    return this.#get(`${this.#base}/blobs/${digest}`, '*/*', from > 0 ? { range: `bytes=${from}-` } : {});
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  #failed(code: 'image-pull' | 'image-not-found' | 'image-pull-denied', why: string, cause?: unknown): RuntimeError {
    return new RuntimeError(code, `pull ${this.#reference.name}: ${why}`, { cause });
  }

  async #send(url: string, headers: Record<string, string>): Promise<Dispatcher.ResponseData> {
    try {
      return await request(url, { dispatcher: this.#agent, headers: { 'user-agent': 'hyperedge', ...headers } });
    } catch (error) {
      throw this.#failed('image-pull', `registry ${new URL(url).host} cannot be reached: ${messageOf(error)}`, error);
    }
  }

  /**
   * Follows redirects, because blobs may be on a content network. Credentials are sent only to the registry's own
   * origin.
   */
  async #get(
    url: string,
    accept: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Dispatcher.ResponseData> {
    const origin = new URL(url).origin;
    let target = url;
    let challenged = false;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; ) {
      const own = new URL(target).origin === origin;
      const response = await this.#send(target, {
        accept,
        ...more,
        ...(own && this.#authorization !== undefined ? { authorization: this.#authorization } : {}),
      });
      const { statusCode } = response;
      if (statusCode >= 200 && statusCode < 300) return response;
      if (statusCode === 401 && own && !challenged) {
        challenged = true;
        await response.body.dump();
        this.#authorization = await this.#authorize(String(response.headers['www-authenticate'] ?? ''));
        continue;
      }
      const location = response.headers['location'];
      if ([301, 302, 303, 307, 308].includes(statusCode) && typeof location === 'string') {
        await response.body.dump();
        if (!URL.canParse(location, target))
          throw this.#failed('image-pull', 'the redirect of the registry has no valid URL');
        const next = new URL(location, target);
        if (next.protocol !== 'https:' && !(this.#plain && next.protocol === 'http:'))
          throw this.#failed('image-pull', `refused redirect to ${next.protocol}//${next.host}`);
        target = next.href;
        redirects++;
        continue;
      }
      throw await this.#rejection(response, target);
    }
    throw this.#failed('image-pull', 'too many redirects');
  }

  async #rejection(response: Dispatcher.ResponseData, url: string): Promise<RuntimeError> {
    const detail = await this.#readAll(response.body, 16 * 1024)
      .then(registryMessage)
      .catch(() => '');
    const { statusCode } = response;
    const why = `${new URL(url).host} answered ${statusCode}${detail === '' ? '' : `: ${detail}`}`;
    if (statusCode === 404) return this.#failed('image-not-found', why);
    if (statusCode === 401 || statusCode === 403) return this.#failed('image-pull-denied', why);
    return this.#failed('image-pull', why);
  }

  /** Authorization header for an RFC 7235 challenge (distribution token authentication specification). */
  async #authorize(challenge: string): Promise<string> {
    const basic =
      this.#auth === undefined
        ? undefined
        : `Basic ${Buffer.from(`${this.#auth.username}:${this.#auth.password}`).toString('base64')}`;
    const scheme = challenge.split(' ', 1)[0]?.toLowerCase() ?? '';
    if (scheme === 'basic') {
      if (basic === undefined)
        throw this.#failed('image-pull-denied', 'the registry requires a user name and password');
      return basic;
    }
    if (scheme !== 'bearer')
      throw this.#failed(
        'image-pull-denied',
        `the registry requires the unsupported authentication scheme ${JSON.stringify(scheme)}`,
      );
    const parameters = new Map<string, string>();
    for (const [, key = '', quoted, bare] of challenge
      .slice(0, MAX_CHALLENGE)
      .matchAll(/\b([a-z_]{1,32})=(?:"([^"]*)"|([^\s,]+))/gi)) {
      parameters.set(key.toLowerCase(), quoted ?? bare ?? '');
    }
    const realm = parameters.get('realm') ?? '';
    if (!URL.canParse(realm)) throw this.#failed('image-pull-denied', 'the registry specifies no token service');
    const url = new URL(realm);
    if (url.protocol !== 'https:' && !(this.#plain && url.protocol === 'http:'))
      throw this.#failed('image-pull', `refused token service ${url.protocol}//${url.host}`);
    const service = parameters.get('service');
    if (service !== undefined) url.searchParams.set('service', service);
    url.searchParams.set(
      'scope',
      parameters.get('scope') ?? `repository:${new URL(this.#base).pathname.slice('/v2/'.length)}:pull`,
    );
    const response = await this.#send(url.href, basic === undefined ? {} : { authorization: basic });
    if (response.statusCode !== 200) {
      const denied = await this.#rejection(response, url.href);
      throw response.statusCode < 500 ? this.#failed('image-pull-denied', denied.message) : denied;
    }
    const answer = parseObject(await this.#readAll(response.body, 256 * 1024), 'the token');
    const token = answer['token'] ?? answer['access_token'];
    if (typeof token !== 'string') throw this.#failed('image-pull-denied', 'the token service returned no token');
    return `Bearer ${token}`;
  }

  async #readAll(body: Readable, limit: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of body as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > limit) throw this.#failed('image-pull', `an answer is larger than ${limit} bytes`);
      parts.push(part);
    }
    return Buffer.concat(parts);
  }

  #digestOf(bytes: Uint8Array): string {
    return contentDigest(bytes);
  }

  async #document(url: string, accept: string): Promise<Buffer> {
    const response = await this.#get(url, accept);
    try {
      return await this.#readAll(response.body, MAX_DOCUMENT_BYTES);
    } catch (error) {
      throw error instanceof RuntimeError ? error : this.#failed('image-pull', messageOf(error), error);
    }
  }
}

/** The first error of a registry's `{"errors":[{code,message}]}`; '' for any other content. */
function registryMessage(body: Buffer): string {
  const errors = parseObject(body, 'the error')['errors'];
  const first = objectOf(Array.isArray(errors) ? errors[0] : undefined);
  return [first['code'], first['message']]
    .filter((part) => typeof part === 'string')
    .join(' ')
    .slice(0, 500);
}
