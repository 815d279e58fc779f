/**
 * Proxies requests of aggregated groups and versions, with the user in front-proxy headers and the proxy client
 * certificate. The client's credentials are not forwarded. Source:
 * k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go.
 */
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream';
import { ApiError } from '../../api/meta/status.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Exchange } from '../http/exchange.ts';
import type { RequestInfo } from '../http/request-info.ts';
import type { BackendRequest, ConnectionInfo, HttpRequest, IncomingMessage, OutgoingHttpHeaders } from '../port.ts';
import type { BackendContext, ServerContext } from '../rest/context.ts';
import { answerHeaders, frameBody, meantName, passedHeaders, upgradeThrough } from '../streaming/forward.ts';
import { authorityOf, CONNECT_TIMEOUT_MS, endpointOf } from './backend.ts';
import { identityHeaders } from './identity.ts';
import type { Delegated } from './services.ts';

type ProxyContext = BackendContext & Pick<ServerContext, 'apiServices' | 'config' | 'log'>;

const LONG_RUNNING: ReadonlySet<string> = new Set(['attach', 'exec', 'proxy', 'log', 'portforward']);
const UNAVAILABLE = 'service unavailable';

/** The aggregated API server that serves the request. Undefined if this server serves it. */
export function delegateOf(context: ProxyContext, info: RequestInfo): Delegated | undefined {
  if (context.apiServices.delegated.length === 0) return undefined;
  if (info.resource) return context.apiServices.delegate(info.group, info.version);
  const [, root, first = '', second = '', more] = info.path.split('/');
  if (more !== undefined && more !== '') return undefined;
  if (root === 'apis' && second !== '') return context.apiServices.delegate(first, second);
  return root === 'api' && first !== '' && second === '' ? context.apiServices.delegate('', first) : undefined;
}

/** Reports whether the request runs until client or server ends it. */
export function isLongRunning(info: RequestInfo): boolean {
  if (!info.resource) return false;
  return info.verb === 'watch' || LONG_RUNNING.has(info.subresource);
}

/** Proxies the request. Resolves when the response is complete or the client has disconnected. */
export async function proxyRequest(context: ProxyContext, exchange: Exchange, to: Delegated): Promise<void> {
  const { request, response, user, connection } = exchange;
  const target = targetOf(context, to);
  if (target === undefined) return refuse(exchange, 503, UNAVAILABLE);
  const headers: OutgoingHttpHeaders = {
    ...headersFor(context, request, connection, user),
    host: target.authority,
  };
  if (exchange.audit !== undefined) headers['audit-id'] = exchange.audit.id;
  const body = frameBody(request, headers);
  let answer: IncomingMessage;
  try {
    answer = await context.backends.request(
      backendRequest(context, { to, target }, request, { headers, signal: exchange.signal }),
      body ? request : undefined,
    );
  } catch (error) {
    if (response.headersSent || response.destroyed) return;
    if (!(error instanceof CodedError) || error.code === 'address-refused') throw error;
    return refuse(exchange, 503, `error trying to reach service: ${messageOf(error)}`);
  }
  const status = answer.statusCode ?? 502;
  if (status >= 300 && status < 400 && answer.headers.location !== undefined) {
    answer.destroy();
    return refuse(exchange, 502, 'the backend attempted to redirect this request, which is not permitted');
  }
  if (exchange.longRunning) await exchange.audit?.started(status);
  else await exchange.recordedFirst(status);
  if (response.headersSent || response.destroyed) {
    answer.destroy();
    return;
  }
  response.writeHead(status, answerHeaders(answer));
  response.flushHeaders();
  await new Promise<void>((resolve) => {
    pipeline(answer, response, () => resolve());
  });
  // Closes the connection of a body that the backend has not read completely.
  if (body && !request.complete && request.httpVersionMajor < 2) request.socket.end();
}

/** An authenticated request for a protocol upgrade. */
interface UpgradeRequest {
  readonly request: IncomingMessage;
  readonly connection: ConnectionInfo;
  readonly user: UserInfo;
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** Like `proxyRequest`, for upgrades. If this rejects, the caller can still send a response on the connection. */
export async function passUpgradeOn(
  context: ProxyContext,
  { request, connection, user, socket, head }: UpgradeRequest,
  to: Delegated,
): Promise<void> {
  const abort = new AbortController();
  socket.once('close', () => abort.abort());
  const target = targetOf(context, to);
  if (target === undefined) throw new ApiError('ServiceUnavailable', UNAVAILABLE);
  const headers = headersFor(context, request, connection, user);
  delete headers['content-length'];
  const upgrading = {
    ...headers,
    host: target.authority,
    connection: 'Upgrade',
    upgrade: request.headers.upgrade ?? '',
  };
  const forwarded = backendRequest(context, { to, target }, request, { headers: upgrading, signal: abort.signal });
  await upgradeThrough(context, { ...forwarded, pooled: false }, socket, head, 'the backend');
}

interface Target {
  readonly host: string;
  readonly port: number;
  readonly authority: string;
}

function targetOf(context: ProxyContext, to: Delegated): Target | undefined {
  if (!to.available) return undefined;
  try {
    const at = endpointOf(context, to);
    return { ...at, authority: authorityOf(at) };
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    context.log.v(2, 'APIService unavailable', { name: to.name, error: error.message });
    return undefined;
  }
}

function backendRequest(
  context: ProxyContext,
  { to, target }: { readonly to: Delegated; readonly target: Target },
  request: HttpRequest,
  sent: Pick<BackendRequest, 'headers' | 'signal'>,
): BackendRequest {
  const { host, port } = target;
  return {
    network: 'cluster',
    scheme: 'https',
    host,
    port,
    method: request.method ?? 'GET',
    path: request.url ?? '/',
    ...sent,
    tls: to.tls,
    allowAddress: context.destinations.extension(port),
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    pooled: true,
  };
}

function headersFor(
  context: ProxyContext,
  request: HttpRequest,
  connection: ConnectionInfo,
  user: UserInfo,
): OutgoingHttpHeaders {
  const headers = passedHeaders(request.headers);
  const { requestHeader } = context.config;
  const { userHeaders = [], groupHeaders = [], uidHeaders = [], extraPrefixes = [] } = requestHeader ?? {};
  const names = new Set([...userHeaders, ...groupHeaders, ...uidHeaders].map(meantName));
  const prefixes = extraPrefixes.map(meantName);
  for (const name of Object.keys(headers)) {
    const meant = meantName(name);
    if (names.has(meant) || prefixes.some((prefix) => meant.startsWith(prefix))) delete headers[name];
  }
  const before = request.headers['x-forwarded-for'];
  const from = connection.remoteAddress;
  headers['x-forwarded-for'] = before === undefined ? from : `${String(before)}, ${from}`;
  return { ...headers, ...identityHeaders(user) };
}

/** Rejects the request with a plain text, as in upstream. */
function refuse(exchange: Exchange, code: number, text: string): void {
  const { response } = exchange;
  response.setHeader('x-content-type-options', 'nosniff');
  exchange.sendBytes(code, Buffer.from(`${text}\n`), 'text/plain; charset=utf-8');
}
