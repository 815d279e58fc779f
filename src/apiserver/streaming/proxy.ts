/**
 * Proxies requests and upgrades. After a 101 response of the backend, the connections of client and backend are joined.
 * Any other response to an upgrade is returned and both connections are closed, so that no second request can follow a
 * failed upgrade.
 */
import type { Duplex, Transform } from 'node:stream';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { ApiError, errors } from '../../api/meta/status.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { ANONYMOUS } from '../authentication/authenticator.ts';
import type { Exchange } from '../http/exchange.ts';
import { isTrue, type ResourceRequestInfo } from '../http/request-info.ts';
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from '../port.ts';
import type { BackendContext, ServerContext } from '../rest/context.ts';
import { admitConnect } from './connect.ts';
import { answerHeaders, backendRequest, frameBody, passedHeaders, textOf, upgradeThrough } from './forward.ts';
import { LinkRewriter, type ProxiedPage, proxiedLink } from './link-rewriter.ts';
import { checkLogOptions } from './log-options.ts';
import { endWithClaim, rigTarget } from './rigs.ts';
import { isWithoutLogs, kubeletTarget, proxyTarget, type Target } from './targets.ts';

type ProxyContext = BackendContext & Pick<ServerContext, 'admission' | 'certificates' | 'config' | 'kinds'>;

/** Content security policy that gives a page an origin of its own. */
const SANDBOX = 'sandbox allow-forms allow-scripts';

const hostOf = (target: Target): string =>
  `${target.host.includes(':') ? `[${target.host}]` : target.host}:${target.port}`;

function forwardedHeaders(headers: IncomingHttpHeaders, target: Target): OutgoingHttpHeaders {
  return { ...passedHeaders(headers), host: hostOf(target) };
}

async function targetOf(context: ProxyContext, info: ResourceRequestInfo): Promise<Target> {
  await context.cache.freshen();
  if (info.subresource === 'console') return rigTarget(context, info);
  return info.subresource === 'proxy' ? proxyTarget(context, info) : kubeletTarget(context, info);
}

/** Handles ordinary requests: logs and proxied HTTP. exec, attach and portforward require an upgrade. */
export async function stream(context: ProxyContext, exchange: Exchange, info: ResourceRequestInfo): Promise<void> {
  if (info.subresource === 'log') {
    checkLogOptions(info);
    await context.cache.freshen();
    if (isWithoutLogs(context, info)) {
      await exchange.recordedFirst(204);
      exchange.response.writeHead(204, exchange.headers('text/plain'));
      exchange.response.end();
      return;
    }
  } else if (info.subresource !== 'proxy') {
    await admitConnect(context, info, exchange.user, exchange.warnings);
    // A missing pod is reported before the missing upgrade.
    await targetOf(context, info);
    throw errors.badRequest('Upgrade request required');
  }
  exchange.longRunning = info.subresource === 'proxy' || isTrue(info.query.get('follow'));
  if (info.subresource === 'proxy') await admitConnect(context, info, exchange.user, exchange.warnings);
  const target = await targetOf(context, info);
  const { request, response } = exchange;
  if (info.subresource === 'proxy' && info.tail === '' && (request.method === 'GET' || request.method === 'HEAD')) {
    await redirectToRoot(exchange);
    return;
  }
  const headers = forwardedHeaders(request.headers, target);
  if (isAdministration(info, target)) headers['x-remote-user'] = encodeURIComponent(exchange.user.name);
  const page = pageOf(info, target, request.headers.host);
  if (info.subresource === 'proxy') {
    // These headers let the backend build links as its clients see them.
    headers['x-forwarded-uri'] = `${page.prefix}${encodeURI(info.tail === '' ? '/' : info.tail)}`;
    headers['x-forwarded-host'] = request.headers.host ?? '';
    headers['x-forwarded-proto'] = 'https';
  }
  const hasBody = frameBody(request, headers);
  const answer = await context.backends.request(
    backendRequest(target, request.method ?? 'GET', headers, exchange.signal),
    hasBody ? request : undefined,
  );
  if (info.subresource === 'log') {
    const status = answer.statusCode ?? 502;
    if (status !== 200) throw await kubeletFailure(answer, status, info);
    await exchange.audit?.started(200);
    if (!exchange.longRunning) await exchange.recordedFirst(200);
    if (response.headersSent) return;
    response.writeHead(200, exchange.headers('text/plain'));
    response.flushHeaders();
    await new Promise<void>((resolve) => {
      pipeline(answer, response, () => resolve());
    });
    return;
  }
  await exchange.audit?.started(answer.statusCode ?? 502);
  if (response.headersSent || response.destroyed) answer.destroy();
  else await passPage(answer, exchange, info, page);
}

/**
 * Reports whether the request is for the endpoints by which a kubelet administers its host. They log the user's name.
 */
const isAdministration = ({ plural, tail }: ResourceRequestInfo, { tls }: Target): boolean =>
  plural === 'nodes' && tls?.certificate !== undefined && tail.startsWith('/hyperedge/');

/**
 * Redirects to a path with a trailing slash, so that relative links of the backend's root page resolve correctly.
 * Source: k8s.io/apimachinery/pkg/util/proxy proxyRedirectsforRootPath.
 */
async function redirectToRoot(exchange: Exchange): Promise<void> {
  const [path = '', ...query] = (exchange.request.url ?? '').split('?');
  const location = [`${path}/`, ...query].join('?');
  await exchange.recordedFirst(301);
  exchange.response.writeHead(301, { ...exchange.headers('text/plain'), location });
  exchange.response.end();
}

function pageOf(info: ResourceRequestInfo, target: Target, host: string | undefined): ProxiedPage {
  const place = info.namespace === '' ? '' : `/namespaces/${info.namespace}`;
  return {
    prefix: encodeURI(`/api/${info.version}${place}/${info.plural}/${info.name}/proxy`).replaceAll("'", '%27'),
    hosts: [hostOf(target), ...(host === undefined ? [] : [host])],
  };
}

/** Forwards the response of a pod, service or node, with links that lead through the proxy. */
async function passPage(
  answer: IncomingMessage,
  { response, user }: Exchange,
  info: ResourceRequestInfo,
  page: ProxiedPage,
): Promise<void> {
  const status = answer.statusCode ?? 502;
  const headers = answerHeaders(answer);
  // An anonymous client can open a tenant's page by a link. Without the sandbox, scripts of the page would have the
  // origin of the OAuth server.
  if (user.name === ANONYMOUS.name)
    headers['content-security-policy'] = [headers['content-security-policy'] ?? [], SANDBOX].flat().join(', ');
  if (status >= 300 && status < 400 && status !== 304) {
    if (info.plural === 'nodes') {
      answer.destroy();
      throw new ApiError('BadGateway', `the backend returned a redirect (${status}), which is not followed`);
    }
    if (answer.headers.location !== undefined) headers['location'] = proxiedLink(answer.headers.location, page);
  }
  const steps: Transform[] = [];
  const encoding = answer.headers['content-encoding'] ?? '';
  const isPage = /^\s*text\/html\s*(?:;|$)/i.test(answer.headers['content-type'] ?? '');
  if (isPage && (encoding === '' || encoding === 'gzip')) {
    if (encoding === 'gzip') steps.push(createGunzip());
    steps.push(new LinkRewriter(page));
    delete headers['content-encoding'];
    delete headers['content-length'];
  }
  response.writeHead(status, headers);
  response.flushHeaders();
  await new Promise<void>((resolve) => {
    pipeline([answer, ...steps, response], () => resolve());
  });
}

const MAX_FAILURE_TEXT = 8 * 1024;

/** Converts a plain-text error of a kubelet to an ApiError. */
async function kubeletFailure(answer: IncomingMessage, status: number, info: ResourceRequestInfo): Promise<ApiError> {
  const message = (await textOf(answer, MAX_FAILURE_TEXT)).trim();
  if (status === 404) return new ApiError('NotFound', message === '' ? `log of pod ${info.name} not found` : message);
  if (status === 400) return errors.badRequest(message);
  if (status === 401 || status === 403) {
    return new ApiError('InternalError', `the kubelet rejected the API server's certificate: ${message}`);
  }
  return new ApiError('InternalError', message === '' ? `the kubelet returned status ${status}` : message);
}

export interface StreamUpgrade {
  readonly request: IncomingMessage;
  readonly user: UserInfo;
  readonly socket: Duplex;
  /** First bytes after the request. */
  readonly head: Buffer;
}

/** Handles upgrades: connects the client's socket with the kubelet's socket. The request must be authorized. */
export async function streamUpgrade(
  context: ProxyContext,
  { request, user, socket, head }: StreamUpgrade,
  info: ResourceRequestInfo,
): Promise<void> {
  const abort = new AbortController();
  const onClose = (): void => abort.abort();
  socket.once('close', onClose);
  await admitConnect(context, info, user, []);
  const target = await targetOf(context, info);
  const headers = forwardedHeaders(request.headers, target);
  headers['connection'] = 'Upgrade';
  headers['upgrade'] = request.headers.upgrade ?? '';
  delete headers['content-length'];
  const backend = backendRequest(target, request.method ?? 'GET', headers, abort.signal);
  if (info.subresource === 'console') endWithClaim(context, info, socket);
  await upgradeThrough(context, backend, socket, head, 'the kubelet');
}
