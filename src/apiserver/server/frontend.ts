/** Request pipeline: request info, authentication, flow control, authorization, handler, then metrics and audit. */
import type { Duplex } from 'node:stream';
import { ApiError } from '../../api/meta/status.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { UnderWay } from '../../base/concurrency/running-count.ts';
import type { Timer } from '../../base/time/clock.ts';
import { delegateOf, isLongRunning, passUpgradeOn, proxyRequest } from '../aggregation/proxy.ts';
import { ANONYMOUS, unauthorized } from '../authentication/index.ts';
import { Impersonation, type ImpersonationNote } from '../authorization/impersonation.ts';
import { actionOf } from '../authorization/index.ts';
import type { Gate } from '../flow-control/gate.ts';
import { Browsers } from '../http/browsers.ts';
import { isWrite, requestLimit, timeoutError, writeDeadline } from '../http/deadline.ts';
import { Exchange } from '../http/exchange.ts';
import { failureOf } from '../http/failures.ts';
import { parseRequestInfo, type RequestInfo, type ResourceRequestInfo } from '../http/request-info.ts';
import type { ServedKind } from '../pipeline/kinds.ts';
import { methodNotAllowed } from '../pipeline/write-request.ts';
import type { ConnectionInfo, HttpRequest, HttpResponse, IncomingMessage } from '../port.ts';
import type { ServerContext } from '../rest/context.ts';
import { dispatch } from '../rest/dispatch.ts';
import { noSuchResource, servedAt } from '../rest/reads/served-at.ts';
import { hasSubresource } from '../rest/subresources/strategies.ts';
import { endUpgrade, streamUpgrade } from '../streaming/index.ts';
import type { Endpoints } from './endpoints.ts';
import type { Metrics } from './metrics.ts';
import { allowsAnonymous, OpenPaths } from './open-paths.ts';

const REQUEST_TIMEOUT_SECONDS = 60;

const SWITCHING = 101;
const TOO_MANY = 429;
/** Shorter bodies of rejected requests are read to their end, so that the client can reuse its connection. */
const MAX_DISCARDED = 256 * 1024;
const UNAUTHENTICATED: UserInfo = { name: '', groups: [] };
const UPGRADABLE: ReadonlySet<string> = new Set(['exec', 'attach', 'console', 'portforward', 'proxy']);

interface Identified extends ImpersonationNote {
  /** The user before impersonation. */
  authenticated: UserInfo | undefined;
}

export class Frontend {
  readonly #context: ServerContext;
  readonly #metrics: Metrics;
  readonly #endpoints: Endpoints;
  readonly #gate: Gate;
  readonly #impersonation: Impersonation;
  readonly #timeoutMs: number;
  readonly #browsers: Browsers | undefined;
  readonly #open: OpenPaths;
  /** Requests with a deadline. */
  readonly #underWay = new UnderWay<Exchange>();
  #deadlineTimer: Timer | undefined;
  /** Deadline for which the timer is set. */
  #nextDeadlineMs = Number.POSITIVE_INFINITY;
  /** Called when the last request with a deadline has ended. */
  #idle: (() => void) | undefined;

  constructor(context: ServerContext, metrics: Metrics, endpoints: Endpoints, gate: Gate, open = new OpenPaths()) {
    this.#open = open;
    this.#context = context;
    this.#metrics = metrics;
    this.#endpoints = endpoints;
    this.#gate = gate;
    this.#impersonation = new Impersonation(context.authorization);
    this.#timeoutMs = (context.config.requestTimeoutSeconds ?? REQUEST_TIMEOUT_SECONDS) * 1000;
    const { browsers } = context.config;
    this.#browsers = browsers === undefined ? undefined : new Browsers(browsers);
  }

  /** Resolves when the last request with a deadline has ended. No new requests may arrive. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#underWay.size === 0) resolve();
      else this.#idle = resolve;
    });
  }

  handle(request: HttpRequest, response: HttpResponse, connection: ConnectionInfo): void {
    const startedMs = this.#context.clock.monotonicMs();
    let exchange: Exchange | undefined;
    try {
      if (this.#browsers?.answer(request, response) === true) return;
      const info = parseRequestInfo(request.method ?? '', request.url ?? '');
      exchange = new Exchange(request, response, connection, info, ANONYMOUS, startedMs);
      if (!isLongRunning(info)) exchange.deadlineMs = startedMs + requestLimit(info, this.#timeoutMs);
      if (this.#open.handles(info.path, request)) {
        connection.identified?.(this.#open.isPublic(info.path, request) ? 'public' : 'anonymous');
        this.#admit(exchange, ANONYMOUS, startedMs);
        return;
      }
      const user = this.#identify(request, connection, info, exchange);
      if (user instanceof Promise) this.#later(exchange, user);
      else this.#admit(exchange, user, startedMs);
    } catch (error) {
      exchange ??= new Exchange(
        request,
        response,
        connection,
        { resource: false, path: '', query: new URLSearchParams(), verb: '' },
        ANONYMOUS,
        startedMs,
      );
      this.reject(exchange, error);
    }
  }

  /** Continues the request when an asynchronous authenticator has finished. */
  #later(exchange: Exchange, user: Promise<UserInfo>): void {
    this.#wait(
      exchange,
      user.then((known) => this.#admit(exchange, known, this.#context.clock.monotonicMs())),
    );
  }

  #wait(exchange: Exchange, step: Promise<void>): void {
    step.catch((error: unknown) => this.reject(exchange, error));
  }

  #admit(exchange: Exchange, user: UserInfo, nowMs: number): void {
    exchange.user = user;
    const recorded = this.#context.audit === undefined ? undefined : this.#record(exchange, user);
    if (recorded !== undefined) this.#wait(exchange, this.#admitRecorded(exchange, recorded));
    else if (this.#gate.admit(exchange, nowMs)) this.#authorize(exchange);
  }

  /** Waits until the audit event has been written. If the sink requires the event but loses it, rejects the request. */
  async #admitRecorded(exchange: Exchange, recorded: Promise<boolean>): Promise<void> {
    if (!(await recorded)) {
      exchange.audit?.abandon();
      throw new ApiError('InternalError', 'failed to store audit event');
    }
    if (this.#gate.admit(exchange, this.#context.clock.monotonicMs())) this.#authorize(exchange);
  }

  /** Continues a request that waited in a flow control queue. */
  resume(exchange: Exchange): void {
    try {
      this.#authorize(exchange);
    } catch (error) {
      this.reject(exchange, error);
    }
  }

  reject(exchange: Exchange, error: unknown): void {
    this.#fail(exchange, error);
    this.#book(exchange);
  }

  #authorize(exchange: Exchange): void {
    const { user, info, audit, request } = exchange;
    const { authorization } = this.#context;
    if (this.#open.handles(info.path, request)) {
      const pending = this.#open.answer(exchange);
      if (pending === undefined) this.#book(exchange);
      else this.#follow(exchange, pending);
      return;
    }
    const allowed =
      audit === undefined
        ? authorization.requireRequest(user, info)
        : authorization.requireRecorded(user, info, (decision) => audit.decided(decision));
    if (allowed === undefined) this.#run(exchange);
    else
      this.#wait(
        exchange,
        allowed.then(() => this.#run(exchange)),
      );
  }

  #record(exchange: Exchange, user: UserInfo): Promise<boolean> | undefined {
    const { request, connection, info, response } = exchange;
    const { audit } = this.#context;
    const authenticated = exchange.authenticated ?? user;
    const record = audit?.begin({ request, connection, info, authenticated });
    if (record === undefined) return undefined;
    exchange.audit = record;
    response.setHeader('audit-id', record.id);
    const recorded = record.received();
    if (authenticated !== user) record.impersonates(user, exchange.impersonation);
    return recorded;
  }

  /** Audits a request that failed before authorization because of invalid credentials or impersonation. */
  #auditUnauthenticated(exchange: Exchange): void {
    const { request, connection, info } = exchange;
    if (info.path === '') return;
    const authenticated = exchange.authenticated ?? UNAUTHENTICATED;
    exchange.audit = this.#context.audit?.begin({ request, connection, info, authenticated });
  }

  #run(exchange: Exchange): void {
    const { info } = exchange;
    const pending = info.resource ? this.#dispatchResource(exchange, info) : this.#answerPath(exchange);
    if (pending === undefined) this.#book(exchange);
    else this.#follow(exchange, pending);
  }

  /** Authenticates the request. Stores the user before impersonation in `note`. */
  #identify(
    request: HttpRequest,
    connection: ConnectionInfo,
    info: RequestInfo,
    note: Identified,
  ): UserInfo | Promise<UserInfo> {
    let user: UserInfo | undefined | Promise<UserInfo>;
    try {
      user = this.#context.authenticator.authenticate(request, connection);
    } catch (error) {
      connection.identified?.('refused');
      throw error;
    }
    if (user instanceof Promise) {
      return user.then(
        (known) => {
          connection.identified?.('user');
          note.authenticated = known;
          return this.#impersonation.of(request, known, info, note);
        },
        (error: unknown) => {
          connection.identified?.('refused');
          throw error;
        },
      );
    }
    note.authenticated = user;
    if (user === undefined) {
      const allowed = allowsAnonymous(info, this.#context.identities.current);
      connection.identified?.(allowed ? 'anonymous' : 'refused');
      if (allowed) return ANONYMOUS;
      throw unauthorized();
    }
    connection.identified?.('user');
    return this.#impersonation.of(request, user, info, note);
  }

  #answerPath(exchange: Exchange): Promise<void> | undefined {
    const delegate = delegateOf(this.#context, exchange.info);
    return delegate === undefined ? this.#endpoints.answer(exchange) : proxyRequest(this.#context, exchange, delegate);
  }

  #dispatchResource(exchange: Exchange, info: ResourceRequestInfo): Promise<void> | undefined {
    const delegate = delegateOf(this.#context, info);
    if (delegate === undefined) {
      if (isWrite(info)) exchange.deadlineMs = writeDeadline(exchange.startedMs, exchange.deadlineMs);
      return dispatch(this.#context, exchange, info);
    }
    exchange.longRunning = isLongRunning(info);
    // This server does not know when the aggregated server has started the watch, so the watch counts as started now.
    exchange.initialised?.();
    return proxyRequest(this.#context, exchange, delegate);
  }

  /** Waits for a handler that did not finish synchronously. */
  #follow(exchange: Exchange, pending: Promise<void>): void {
    const { info } = exchange;
    const metrics = this.#metrics;
    const counted = !exchange.longRunning;
    const reading = info.verb === 'get' || info.verb === 'list';
    if (counted) {
      if (reading) metrics.inFlightReading += 1;
      else metrics.inFlightMutating += 1;
      this.#underWay.add(exchange);
      if (exchange.deadlineMs < this.#nextDeadlineMs) this.#watchDeadlines(exchange.deadlineMs);
    }
    const done = (): void => {
      if (counted) {
        this.#underWay.delete(exchange);
        if (this.#underWay.size === 0) this.#idle?.();
        if (reading) metrics.inFlightReading -= 1;
        else metrics.inFlightMutating -= 1;
      }
      this.#book(exchange);
    };
    pending.then(done, (error: unknown) => {
      try {
        this.#fail(exchange, error);
      } finally {
        done();
      }
    });
  }

  /** One timer for all requests, set to the earliest deadline. */
  #watchDeadlines(deadlineMs: number): void {
    const { clock } = this.#context;
    this.#deadlineTimer?.cancel();
    this.#nextDeadlineMs = deadlineMs;
    this.#deadlineTimer = clock.setTimer(Math.max(1, deadlineMs - clock.monotonicMs()), () => {
      this.#nextDeadlineMs = Number.POSITIVE_INFINITY;
      const nowMs = clock.monotonicMs();
      let nextMs = Number.POSITIVE_INFINITY;
      for (const exchange of this.#underWay.all()) {
        if (exchange.deadlineMs > nowMs) nextMs = Math.min(nextMs, exchange.deadlineMs);
        else this.#tooLate(exchange);
      }
      if (nextMs < Number.POSITIVE_INFINITY) this.#watchDeadlines(nextMs);
    });
  }

  #tooLate(exchange: Exchange): void {
    this.#underWay.delete(exchange);
    if (this.#underWay.size === 0) this.#idle?.();
    if (exchange.longRunning) return;
    this.#fail(exchange, timeoutError(exchange.info));
  }

  #fail(exchange: Exchange, error: unknown): void {
    const { failure, unexpected } = failureOf(error);
    const { response, request } = exchange;
    if (unexpected) {
      const stack = error instanceof Error ? error.stack : undefined;
      this.#context.log.error('request failed', {
        method: request.method,
        path: exchange.info.path,
        error: stack ?? String(error),
      });
    }
    if (response.headersSent || response.destroyed) {
      // Headers are already sent. The connection is destroyed, because a truncated response must not look complete.
      if (!response.writableEnded) response.destroy();
      return;
    }
    const retry = failure.details?.retryAfterSeconds;
    if (Number.isSafeInteger(retry)) response.setHeader('retry-after', String(retry));
    const status = failure.toStatus();
    if (exchange.audit === undefined && this.#context.audit !== undefined) this.#auditUnauthenticated(exchange);
    exchange.audit?.failed(status);
    const { listMeta } = failure as { listMeta?: object };
    const keep = failure.httpCode === TOO_MANY && exchange.discardBody(MAX_DISCARDED);
    exchange.sendObject(failure.httpCode, listMeta === undefined ? status : { ...status, metadata: listMeta });
    if (!request.complete && !keep) this.#abandonBody(exchange);
  }

  /**
   * Discards the rest of an unread body: closes the HTTP/1.1 connection after the response, or only the HTTP/2 stream.
   */
  #abandonBody(exchange: Exchange): void {
    const { request, response } = exchange;
    response.once('finish', () => {
      if (request.httpVersionMajor < 2) {
        if (!request.complete) request.socket.end();
      } else {
        const { stream } = request;
        stream?.close(0);
      }
    });
  }

  #noteDeprecated(info: ResourceRequestInfo, kind: ServedKind | undefined): void {
    const removed = kind?.alias?.deprecated?.removed;
    if (removed !== undefined) this.#metrics.recordDeprecated(info, removed);
    else if (isDeprecated(kind)) this.#metrics.recordDeprecated(info, '');
  }

  #book(exchange: Exchange): void {
    const { info, response, startedMs } = exchange;
    void exchange.audit?.complete(response.statusCode);
    const { clock, log, kinds } = this.#context;
    const nowMs = clock.monotonicMs();
    const ms = nowMs - startedMs;
    this.#gate.leave(exchange, nowMs);
    const kind = info.resource ? kinds.at(info.group, info.version, info.plural) : undefined;
    // Unknown resources share one series, so that clients cannot create series.
    const known = info.resource && kind !== undefined && hasSubresource(kind, info.subresource);
    if (known && info.resource) this.#noteDeprecated(info, kind);
    const { compressedBytes } = exchange;
    const bytes = compressedBytes === undefined ? exchange.sentBytes : undefined;
    this.#metrics.record(info, known, response.statusCode, exchange.longRunning ? undefined : ms / 1000, bytes);
    // The size is recorded later, because the response is still being compressed.
    void compressedBytes?.then((sent) => this.#metrics.recordSize(info, known, sent));
    if (log.enabled(6)) {
      log.v(6, 'request', {
        verb: info.verb,
        uri: uriForLog(exchange.request.url),
        user: exchange.user.name,
        agent: exchange.header('user-agent')?.slice(0, 128),
        from: exchange.connection.remoteAddress,
        code: response.statusCode,
        apf_pl: exchange.flows?.level.name,
        apf_fs: exchange.flows?.name,
        ms: Math.round(ms * 1000) / 1000,
      });
    }
  }

  /**
   * Handles HTTP/1.1 upgrades: exec, attach, port-forward and proxied WebSockets, and logs and watches over WebSocket.
   */
  upgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    connection: ConnectionInfo,
    inMessages: () => HttpResponse,
  ): void {
    if (this.#isReadInMessages(request)) {
      this.handle(request, inMessages(), connection);
      return;
    }
    const startedMs = this.#context.clock.monotonicMs();
    this.#upgrade(request, socket, head, connection)
      .catch((error: unknown) => endUpgrade(socket, error))
      .finally(() => {
        if (!this.#context.log.enabled(6)) return;
        this.#context.log.v(6, 'upgrade', {
          uri: uriForLog(request.url),
          from: connection.remoteAddress,
          ms: Math.round(this.#context.clock.monotonicMs() - startedMs),
        });
      });
  }

  /** Reports whether the upgrade is a log or watch over WebSocket. These only read, so they use the normal pipeline. */
  #isReadInMessages(request: IncomingMessage): boolean {
    if (request.headers.upgrade?.toLowerCase() !== 'websocket' || request.method !== 'GET') return false;
    try {
      const info = parseRequestInfo('GET', request.url ?? '');
      if (!info.resource || delegateOf(this.#context, info) !== undefined) return false;
      return info.verb === 'watch' || (info.verb === 'get' && info.subresource === 'log');
    } catch {
      // The normal pipeline reports the error.
      return false;
    }
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, connection: ConnectionInfo): Promise<void> {
    const info = parseRequestInfo(request.method ?? '', request.url ?? '');
    const note: Identified = { authenticated: undefined, impersonation: '' };
    const user = await this.#identify(request, connection, info, note);
    const { audit, authorization } = this.#context;
    const authenticated = note.authenticated ?? user;
    const record = audit?.begin({ request, connection, info, authenticated });
    const recorded = record?.received();
    if (authenticated !== user) record?.impersonates(user, note.impersonation);
    if (recorded !== undefined && !(await recorded)) {
      record?.abandon();
      throw new ApiError('InternalError', 'failed to store audit event');
    }
    try {
      await authorization.requireRecorded(user, info, (decision) => record?.decided(decision));
      const delegate = delegateOf(this.#context, info);
      if (delegate === undefined) await this.#requireUpgradable(info, request.method, user);
      await record?.started(SWITCHING);
      const upgrade = { request, connection, user, socket, head };
      if (delegate !== undefined) await passUpgradeOn(this.#context, upgrade, delegate);
      else if (info.resource) await streamUpgrade(this.#context, upgrade, info);
      void record?.complete(SWITCHING);
    } catch (error) {
      record?.failed(failureOf(error).failure.toStatus());
      void record?.complete(failureOf(error).failure.httpCode);
      throw error;
    }
  }

  /**
   * Throws an ApiError if the resource has no upgrade or the user lacks the `create` permission. A WebSocket starts
   * with GET, but it runs commands and opens connections, also through a proxy. Source: upstream's
   * AuthorizePodWebsocketUpgradeCreatePermission, which covers pods only.
   */
  async #requireUpgradable(info: RequestInfo, method: string | undefined, user: UserInfo): Promise<void> {
    if (!info.resource || !UPGRADABLE.has(info.subresource) || (info.tail !== '' && info.subresource !== 'proxy')) {
      throw new ApiError('BadRequest', 'this resource cannot be upgraded');
    }
    const { definition } = servedAt(this.#context.kinds, info);
    if (!(definition.extraSubresources ?? []).some((each) => each.name === info.subresource)) throw noSuchResource();
    if (info.subresource !== 'proxy' && method !== 'GET' && method !== 'POST') throw methodNotAllowed();
    if (info.verb !== 'create') {
      await this.#context.authorization.requireEach(user, [{ ...actionOf(info), verb: 'create' }]);
    }
  }
}

/** Masks tokens, which some clients send in the query string. */
function uriForLog(uri = ''): string {
  return uri.slice(0, 1024).replaceAll(/([?&](?:access_token|token|bearer)=)[^&]*/gi, '$1…');
}

function isDeprecated(kind: ServedKind | undefined): boolean {
  if (kind?.definition.custom?.deprecation !== undefined) return true;
  return kind?.alias === undefined && kind?.definition.deprecation !== undefined;
}
