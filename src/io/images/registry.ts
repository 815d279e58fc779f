/**
 * Client of the Docker Registry HTTP API v2 / OCI distribution specification, for pulling: manifests and blobs, with basic and bearer
 * token authentication. Every answer is checked against its digest.
 */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Agent, type Dispatcher, request } from 'undici';
import { messageOf } from '../../base/errors.ts';
import { type RegistryAuth, RuntimeError } from '../../core/podplan/port.ts';
import { MAX_DOCUMENT_BYTES, objectOf, parseObject } from './image-config.ts';
import type { ImageReference } from './reference.ts';

const MANIFEST_TYPES = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');
const MAX_REDIRECTS = 5;
const CONNECT_TIMEOUT_MS = 5_000;
const HEADERS_TIMEOUT_MS = 20_000;
const BODY_IDLE_TIMEOUT_MS = 60_000;

export interface RegistryOptions {
  /** Registries spoken to in plain HTTP, as `host` or `host:port`; loopback ones always are tried that way. */
  readonly insecureRegistries: readonly string[];
  /** Where another host serves a registry: `docker.io` → `mirror.lab:5000`. */
  readonly mirrors: Readonly<Record<string, string>>;
}

export interface RegistryClient {
  /** `reference` is a tag or a digest. */
  manifest(reference: string): Promise<{ readonly digest: string; readonly bytes: Buffer }>;
  /** A small blob, whole. */
  document(digest: string): Promise<Buffer>;
  /** Downloads to a new file. */
  blob(digest: string, size: number, path: string): Promise<void>;
  close(): Promise<void>;
}

export function createRegistryClient(
  reference: ImageReference,
  auth: RegistryAuth | undefined,
  options: RegistryOptions,
): RegistryClient {
  const mirror = Object.hasOwn(options.mirrors, reference.domain) ? options.mirrors[reference.domain] : undefined;
  const host = mirror ?? (reference.domain === 'docker.io' ? 'registry-1.docker.io' : reference.domain);
  const plain =
    options.insecureRegistries.includes(host) || /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(host);
  const base = `${plain ? 'http' : 'https'}://${host}/v2/${reference.path}`;
  const agent = new Agent({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: HEADERS_TIMEOUT_MS,
    bodyTimeout: BODY_IDLE_TIMEOUT_MS,
    connections: 4,
  });
  let authorization: string | undefined;

  const failed = (
    code: 'image-pull' | 'image-not-found' | 'image-pull-denied',
    why: string,
    cause?: unknown,
  ): RuntimeError => new RuntimeError(code, `pull ${reference.name}: ${why}`, { cause });

  async function send(url: string, headers: Record<string, string>): Promise<Dispatcher.ResponseData> {
    try {
      return await request(url, { dispatcher: agent, headers: { 'user-agent': 'hyperedge', ...headers } });
    } catch (error) {
      throw failed('image-pull', `registry ${new URL(url).host} cannot be reached: ${messageOf(error)}`, error);
    }
  }

  /** Follows redirects (blobs live on content networks); credentials stay with the registry's own origin. */
  async function get(url: string, accept: string): Promise<Dispatcher.ResponseData> {
    const origin = new URL(url).origin;
    let target = url;
    let challenged = false;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; ) {
      const own = new URL(target).origin === origin;
      const response = await send(target, {
        accept,
        ...(own && authorization !== undefined ? { authorization } : {}),
      });
      const { statusCode } = response;
      if (statusCode >= 200 && statusCode < 300) return response;
      if (statusCode === 401 && own && !challenged) {
        challenged = true;
        await response.body.dump();
        authorization = await authorize(String(response.headers['www-authenticate'] ?? ''));
        continue;
      }
      const location = response.headers['location'];
      if ([301, 302, 303, 307, 308].includes(statusCode) && typeof location === 'string') {
        await response.body.dump();
        const next = new URL(location, target);
        if (next.protocol !== 'https:' && !(plain && next.protocol === 'http:'))
          throw failed('image-pull', `refused redirect to ${next.protocol}//${next.host}`);
        target = next.href;
        redirects++;
        continue;
      }
      throw await rejection(response, target);
    }
    throw failed('image-pull', 'too many redirects');
  }

  async function rejection(response: Dispatcher.ResponseData, url: string): Promise<RuntimeError> {
    const detail = await readAll(response.body, 16 * 1024).then(registryMessage, () => '');
    const { statusCode } = response;
    const why = `${new URL(url).host} answered ${statusCode}${detail === '' ? '' : `: ${detail}`}`;
    if (statusCode === 404) return failed('image-not-found', why);
    if (statusCode === 401 || statusCode === 403) return failed('image-pull-denied', why);
    return failed('image-pull', why);
  }

  /** RFC 7235 challenge → the Authorization header to use (distribution token authentication specification). */
  async function authorize(challenge: string): Promise<string> {
    const basic =
      auth === undefined ? undefined : `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`;
    const scheme = challenge.split(' ', 1)[0]?.toLowerCase() ?? '';
    if (scheme === 'basic') {
      if (basic === undefined) throw failed('image-pull-denied', 'the registry asks for a user name and password');
      return basic;
    }
    if (scheme !== 'bearer')
      throw failed('image-pull-denied', `the registry asks for unknown authentication ${JSON.stringify(scheme)}`);
    const parameters = new Map<string, string>();
    for (const [, key = '', quoted, bare] of challenge.matchAll(/([a-z_]+)=(?:"([^"]*)"|([^\s,]+))/gi)) {
      parameters.set(key.toLowerCase(), quoted ?? bare ?? '');
    }
    const realm = parameters.get('realm') ?? '';
    if (!URL.canParse(realm)) throw failed('image-pull-denied', 'the registry names no token service');
    const url = new URL(realm);
    if (url.protocol !== 'https:' && !(plain && url.protocol === 'http:'))
      throw failed('image-pull', `refused token service ${url.protocol}//${url.host}`);
    const service = parameters.get('service');
    if (service !== undefined) url.searchParams.set('service', service);
    url.searchParams.set('scope', parameters.get('scope') ?? `repository:${reference.path}:pull`);
    const response = await send(url.href, basic === undefined ? {} : { authorization: basic });
    if (response.statusCode !== 200) {
      const denied = await rejection(response, url.href);
      throw response.statusCode < 500 ? failed('image-pull-denied', denied.message) : denied;
    }
    const answer = parseObject(await readAll(response.body, 256 * 1024), 'the token');
    const token = answer['token'] ?? answer['access_token'];
    if (typeof token !== 'string') throw failed('image-pull-denied', 'the token service gave no token');
    return `Bearer ${token}`;
  }

  async function readAll(body: Readable, limit: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of body as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > limit) throw failed('image-pull', `an answer is larger than ${limit} bytes`);
      parts.push(part);
    }
    return Buffer.concat(parts);
  }

  const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

  async function document(url: string, accept: string): Promise<Buffer> {
    const response = await get(url, accept);
    try {
      return await readAll(response.body, MAX_DOCUMENT_BYTES);
    } catch (error) {
      throw error instanceof RuntimeError ? error : failed('image-pull', messageOf(error), error);
    }
  }

  return {
    async manifest(wanted) {
      const bytes = await document(`${base}/manifests/${wanted}`, MANIFEST_TYPES);
      const digest = digestOf(bytes);
      if (wanted.startsWith('sha256:') && digest !== wanted)
        throw failed('image-pull', `the manifest's digest is ${digest} instead of ${wanted}`);
      return { digest, bytes };
    },

    async document(digest) {
      const bytes = await document(`${base}/blobs/${digest}`, '*/*');
      if (digestOf(bytes) !== digest) throw failed('image-pull', `blob ${digest} has digest ${digestOf(bytes)}`);
      return bytes;
    },

    async blob(digest, size, path) {
      const response = await get(`${base}/blobs/${digest}`, '*/*');
      const hash = createHash('sha256');
      let received = 0;
      const check = new Transform({
        transform(chunk: Buffer, _encoding, done) {
          hash.update(chunk);
          received += chunk.length;
          done(received > size ? failed('image-pull', `blob ${digest} is larger than ${size} bytes`) : null, chunk);
        },
      });
      try {
        await pipeline(Readable.from(response.body), check, createWriteStream(path, { flags: 'wx', mode: 0o600 }));
      } catch (error) {
        throw error instanceof RuntimeError
          ? error
          : failed('image-pull', `blob ${digest}: ${messageOf(error)}`, error);
      }
      const actual = `sha256:${hash.digest('hex')}`;
      if (actual !== digest) throw failed('image-pull', `blob ${digest} has digest ${actual}`);
    },

    close: () => agent.destroy(),
  };
}

/** The first error of a registry's `{"errors":[{code,message}]}`; '' when it says something else. */
function registryMessage(body: Buffer): string {
  const errors = parseObject(body, 'the error')['errors'];
  const first = objectOf(Array.isArray(errors) ? errors[0] : undefined);
  return [first['code'], first['message']]
    .filter((part) => typeof part === 'string')
    .join(' ')
    .slice(0, 500);
}
