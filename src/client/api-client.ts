import { readFile } from 'node:fs/promises';
import type { KubeObject, ResourceType } from '../api/meta/object.ts';
import { CodedError, messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Clock } from '../base/time/clock.ts';
import type { CredentialsProvider } from './credentials.ts';
import type { WriteFence } from './leases/write-fence.ts';
import { createResourceClient } from './resource-client.ts';
import { createTransport, type HttpRequest, type Transport } from './transport.ts';
import type { ApiClient, Impersonated } from './types.ts';

export interface ApiClientOptions {
  /** URL `https://host:port` with an optional path prefix. */
  readonly server: string;
  /**
   * Authorities, certificate, key and token that do not change during the lifetime of the client. Certificates and keys
   * are in PEM format.
   */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
  /**
   * Path of a token file that is replaced from time to time, such as that of a projected service account token. It is
   * read at most once a minute.
   */
  readonly tokenFile?: string;
  /** Returns rotating credentials. It is called before every request. They replace `ca`, `cert`, `key` and `token`. */
  readonly credentials?: CredentialsProvider;
  readonly tlsServerName?: string;
  readonly insecureSkipTlsVerify?: boolean;
  readonly userAgent: string;
  readonly log: Log;
  readonly clock: Clock;
  /** Maximum number of connections for requests; watches have their own. Default: 16. */
  readonly maxConnections?: number;
  /** A request fails after this many milliseconds without data from the server. Default: 60,000. */
  readonly timeoutMs?: number;
  /** Field manager for writes that specify none. Default: the user agent up to the first slash. */
  readonly fieldManager?: string;
}

export interface FenceableClient extends ApiClient {
  /**
   * Returns a client on the same connections. Its writes are sent only while `fence` is open. It is closed together
   * with this client.
   */
  fenced(fence: WriteFence): ApiClient;
}

/** Creates a client of one API server. It connects at the first request. */
export function createApiClient(options: ApiClientOptions): FenceableClient {
  const fixed = {
    ...(options.ca === undefined ? {} : { ca: options.ca }),
    ...(options.cert === undefined ? {} : { cert: options.cert }),
    ...(options.key === undefined ? {} : { key: options.key }),
    ...(options.token === undefined ? {} : { token: options.token }),
  };
  const transport = createTransport({
    server: options.server,
    credentials: options.credentials ?? (() => fixed),
    ...(options.tokenFile === undefined ? {} : { bearerToken: tokenFileReader(options.tokenFile, options) }),
    ...(options.tlsServerName === undefined ? {} : { tlsServerName: options.tlsServerName }),
    ...(options.insecureSkipTlsVerify === undefined ? {} : { insecureSkipTlsVerify: options.insecureSkipTlsVerify }),
    userAgent: options.userAgent,
    log: options.log,
    clock: options.clock,
    maxConnections: options.maxConnections ?? 16,
    timeoutMs: options.timeoutMs ?? 60_000,
  });
  const clientOn = (carrier: Transport): ApiClient => ({
    resource: <T extends KubeObject>(type: ResourceType<T>) =>
      createResourceClient(carrier, type, options.fieldManager),
    request: async <R>(
      method: string,
      path: string,
      body?: unknown,
      requestOptions?: { readonly signal?: AbortSignal; readonly impersonate?: Impersonated },
    ) => (await carrier.json({ method, path, body, ...requestOptions })) as R,
    stream: (method, path, body, streamOptions) => carrier.stream({ method, path, body, ...streamOptions }),
    close: () => carrier.close(),
  });
  return { ...clientOn(transport), fenced: (fence) => clientOn(behind(fence, transport)) };
}

function behind(fence: WriteFence, transport: Transport): Transport {
  const guarded = (request: HttpRequest): HttpRequest => (request.method === 'GET' ? request : { ...request, fence });
  return {
    json: (request) => transport.json(guarded(request)),
    stream: (request) => transport.stream(guarded(request)),
    close: async () => {},
  };
}

/**
 * Minimum interval between reads of a token file. Tokens are replaced long before they expire, so an old token is still
 * valid for this time. Source: client-go's cached file token source.
 */
const TOKEN_FILE_PERIOD_MS = 60_000;

function tokenFileReader(path: string, deps: { readonly clock: Clock; readonly log: Log }): () => Promise<string> {
  let token = '';
  let readAtMs = Number.NEGATIVE_INFINITY;
  return async () => {
    const nowMs = deps.clock.monotonicMs();
    if (nowMs - readAtMs < TOKEN_FILE_PERIOD_MS) return token;
    try {
      const read = (await readFile(path, 'utf8')).trim();
      if (read === '') throw new CodedError('token-file', 'the file is empty');
      token = read;
      readAtMs = nowMs;
    } catch (error) {
      if (token === '') throw new CodedError('token-file', `${path}: ${messageOf(error)}`, { cause: error });
      deps.log.warn('cannot read the token file; using the previous token', { path, error: messageOf(error) });
    }
    return token;
  };
}
