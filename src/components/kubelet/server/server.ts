/** The kubelet's HTTPS server. Source: pkg/kubelet/server/server.go. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { TLSSocket } from 'node:tls';
import type { Clock, Timer } from '../../../base/clock.ts';
import { ConnectionGate, type GateLimits } from '../../../base/connections/gate.ts';
import { GatedServer } from '../../../base/connections/gated-server.ts';
import { HttpConnection } from '../../../base/connections/http-connection.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { ByteStream, ContainerStatus, Runtime } from '../../../core/podplan/port.ts';
import { attemptsOf, readySandboxes } from '../../../core/podplan/snapshot.ts';
import type { StreamingServer } from '../../../io/streaming/port.ts';
import type { ServingCertificate } from '../deps.ts';
import type { PodManager } from '../pods/pod-manager.ts';
import type { PodWorker } from '../pods/pod-worker.ts';
import type { RuntimeView } from '../pods/runtime-view.ts';
import type { FileWatch } from '../port.ts';
import type { Access } from './access.ts';
import { type LogOptions, readLog } from './container-logs.ts';
import { type Route, routeOf } from './routes.ts';
import { Sessions, TooManySessions } from './sessions.ts';
import type { StatsProvider } from './stats.ts';

export interface KubeletServerOptions {
  readonly address: string;
  readonly port: number;
  readonly certificate: () => Promise<ServingCertificate>;
  readonly clientCa: () => Promise<string>;
  readonly access: Access;
  readonly pods: PodManager;
  readonly view: RuntimeView;
  readonly runtime: Runtime;
  readonly streaming: StreamingServer;
  readonly stats: StatsProvider;
  readonly files: FileWatch;
  readonly clock: Clock;
  readonly log: Log;
}

/** Certificates are re-issued long before they expire; an hour of the old one is safe. */
const RELOAD_MS = 3600_000;
const HEADERS_TIMEOUT_MS = 15_000;
/** Clients are the API servers, and what collects metrics. */
const LIMITS: GateLimits = {
  authenticated: 1024,
  unauthenticated: 32,
  idleMs: 90_000,
  unauthenticatedIdleMs: 30_000,
  handshakeMs: 32_000,
};
const RUN_TIMEOUT_MS = 600_000;
const RUN_OUTPUT_BYTES = 1024 * 1024;

/** An answer that is an error: a status code and a line of text, as upstream's. */
class HttpError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = 'HttpError';
    this.code = code;
  }
}

export class KubeletServer {
  private readonly options: KubeletServerOptions;
  private server: Server | undefined;
  private timer: Timer | undefined;
  private readonly sockets = new Set<TLSSocket>();
  private readonly sessions = new Sessions();
  private readonly gate = new ConnectionGate(LIMITS);

  constructor(options: KubeletServerOptions) {
    this.options = options;
  }

  /** Resolves with the port once it listens. */
  async start(): Promise<number> {
    const { options } = this;
    const server = createServer({
      ...(await this.context()),
      requestCert: true,
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      ALPNProtocols: ['http/1.1'],
    });
    server.headersTimeout = HEADERS_TIMEOUT_MS;
    server.requestTimeout = 0;
    this.gateConnections(server);
    server.listen({ host: options.address, port: options.port });
    await once(server, 'listening');
    this.server = server;
    this.arm();
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : options.port;
  }

  private gateConnections(server: Server): void {
    const gated = new GatedServer(
      server,
      this.gate,
      (socket: TLSSocket, admitted) => new HttpConnection(socket, admitted),
    );
    // Before Node's own listener, which reads requests.
    server.prependListener('secureConnection', (socket) => {
      if (gated.secured(socket) === undefined) {
        socket.destroy();
        return;
      }
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
    server.on('request', (request, response) => {
      const connection = gated.of(request.socket);
      if (connection === undefined || !connection.admits()) {
        request.destroy();
        return;
      }
      connection.inFlight += 1;
      connection.response = response;
      response.once('close', () => {
        connection.inFlight -= 1;
      });
      void this.answer(request, response, connection);
    });
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const connection = gated.of(socket);
      if (connection === undefined || !connection.admits()) {
        socket.destroy();
        return;
      }
      connection.inFlight += 1;
      void this.upgrade(request, socket, head, connection);
    });
  }

  async stop(): Promise<void> {
    this.timer?.cancel();
    this.gate.stop();
    const { server } = this;
    if (server === undefined) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private async context(): Promise<{ cert: string; key: string; ca: string }> {
    const [{ cert, key }, ca] = await Promise.all([this.options.certificate(), this.options.clientCa()]);
    return { cert, key, ca };
  }

  async reload(): Promise<void> {
    const failed = (error: unknown) => this.options.log.warn('certificate not reloaded', { error: messageOf(error) });
    await this.context()
      .then((context) => this.server?.setSecureContext(context))
      .catch(failed);
  }

  private arm(): void {
    this.timer = this.options.clock.setTimer(RELOAD_MS, () => void this.reload().finally(() => this.arm()));
  }

  private async answer(request: IncomingMessage, response: ServerResponse, connection: HttpConnection): Promise<void> {
    const aborter = new AbortController();
    response.once('close', () => aborter.abort());
    try {
      const route = await this.admit(request, connection);
      await this.serve(route, request, response, aborter.signal);
    } catch (error) {
      if (response.headersSent) {
        response.destroy();
        return;
      }
      const { code, message } = errorAnswer(error);
      if (code >= 500) this.options.log.warn('request failed', { path: request.url, error: message });
      response.writeHead(code, { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' });
      response.end(`${message}\n`);
    }
  }

  /** The route, once the caller is known and allowed. */
  private async admit(request: IncomingMessage, connection: HttpConnection): Promise<Route> {
    const { access } = this.options;
    const caller = await access.authenticate(request);
    connection.identified(caller === undefined ? 'refused' : 'user');
    if (caller === undefined) throw new HttpError(401, 'Unauthorized');
    const route = routeOf(request.method ?? 'GET', request.url ?? '/');
    if (route === undefined) throw new HttpError(404, '404 page not found');
    if (!(await access.authorize(caller, route.verb, route.subresources))) {
      throw new HttpError(
        403,
        `Forbidden (user=${caller.name}, verb=${route.verb}, resource=nodes, subresource(s)=[${route.subresources.join(' ')}])`,
      );
    }
    if (!route.methods.includes(request.method ?? 'GET')) throw new HttpError(405, 'Method Not Allowed');
    return route;
  }

  private async serve(
    route: Route,
    request: IncomingMessage,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const { pods, stats } = this.options;
    switch (route.name) {
      case 'healthz':
        sendText(response, 'ok');
        return;
      case 'pods':
        sendJson(response, {
          kind: 'PodList',
          apiVersion: 'v1',
          metadata: {},
          items: pods.workers().map((worker) => ({ ...worker.pod, status: worker.status })),
        });
        return;
      case 'runningpods':
        sendJson(response, {
          kind: 'PodList',
          apiVersion: 'v1',
          metadata: {},
          items: pods
            .workers()
            .filter((worker) => this.runs(worker))
            .map((worker) => runningPod(worker)),
        });
        return;
      case 'stats':
        sendJson(response, await stats.summary());
        return;
      case 'resourceMetrics':
        sendText(response, await stats.resourceMetrics(), 'text/plain; version=0.0.4; charset=utf-8');
        return;
      case 'metrics':
        sendText(response, stats.ownMetrics(), 'text/plain; version=0.0.4; charset=utf-8');
        return;
      case 'containerLogs':
        await this.serveLogs(route, response, signal);
        return;
      case 'run':
        await this.serveRun(route, response);
        return;
      case 'exec':
      case 'attach':
      case 'portForward':
        request.resume();
        throw new HttpError(400, 'Upgrade request required');
    }
  }

  private runs(worker: PodWorker): boolean {
    return this.options.view.get(worker.uid).containers.some((status) => status.state === 'running');
  }

  private async upgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Uint8Array,
    connection: HttpConnection,
  ): Promise<void> {
    socket.on('error', () => socket.destroy());
    try {
      const route = await this.admit(request, connection);
      const { streaming, runtime } = this.options;
      const query = route.query;
      if (route.name === 'exec' || route.name === 'attach') {
        const worker = this.workerOf(route);
        const status = this.runningContainer(worker, route.container);
        const asked = {
          stdin: flag(query, 'input'),
          stdout: flag(query, 'output'),
          stderr: flag(query, 'error'),
          tty: flag(query, 'tty'),
        };
        const command = query.getAll('command');
        if (route.name === 'exec' && command.length === 0)
          throw new HttpError(400, 'you must specify at least 1 of command');
        await this.sessions.run(route.name, status.id, () =>
          streaming.handleRemoteCommand(request, socket, head, asked, (streams) =>
            route.name === 'exec'
              ? runtime.exec(status.id, { ...streams, command })
              : runtime.attach(status.id, streams),
          ),
        );
        return;
      }
      if (route.name === 'portForward') {
        const worker = this.workerOf(route);
        const [sandbox] = readySandboxes(this.options.view.get(worker.uid).sandboxes);
        if (sandbox === undefined) throw new HttpError(404, `pod ${JSON.stringify(route.pod)} is not running`);
        await this.sessions.run('portForward', sandbox.id, () =>
          streaming.handlePortForward(request, socket, head, (port) => this.connect(sandbox.id, port)),
        );
        return;
      }
      throw new HttpError(400, 'this path is not streamed');
    } catch (error) {
      const { code, message } = errorAnswer(error);
      const body = `${message}\n`;
      socket.end(
        `HTTP/1.1 ${code} ${REASONS[code] ?? 'Error'}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
      );
    }
  }

  private async connect(sandboxId: string, port: number): Promise<ByteStream> {
    const close = this.sessions.open('connection', sandboxId);
    try {
      const stream = await this.options.runtime.portForward(sandboxId, port);
      return {
        readable: stream.readable,
        write: (chunk) => stream.write(chunk),
        end: () => stream.end(),
        destroy: () => {
          close();
          stream.destroy();
        },
      };
    } catch (error) {
      close();
      throw error;
    }
  }

  private workerOf(route: Route): PodWorker {
    const worker = this.options.pods.byName(route.namespace, route.pod);
    if (worker === undefined || (route.uid !== '' && route.uid !== worker.uid)) {
      throw new HttpError(404, `pod does not exist`);
    }
    return worker;
  }

  private runningContainer(worker: PodWorker, name: string): ContainerStatus {
    const found = attemptsOf(this.options.view.get(worker.uid).containers, name).find(
      (each) => each.state === 'running',
    );
    if (found === undefined) throw new HttpError(404, `container not found (${JSON.stringify(name)})`);
    return found;
  }

  private async serveRun(route: Route, response: ServerResponse): Promise<void> {
    const status = this.runningContainer(this.workerOf(route), route.container);
    const command = (route.query.get('cmd') ?? '').split(' ').filter((part) => part !== '');
    if (command.length === 0) throw new HttpError(400, 'cmd is required');
    const result = await this.sessions.run('exec', status.id, () =>
      this.options.runtime.execSync(status.id, command, {
        timeoutMs: RUN_TIMEOUT_MS,
        maxOutputBytes: RUN_OUTPUT_BYTES,
        leavesProcesses: true,
      }),
    );
    sendText(response, Buffer.concat([result.stdout, result.stderr]));
  }

  private async serveLogs(route: Route, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const options = logOptions(route.query, this.options.clock.nowMs());
    const worker = this.options.pods.byName(route.namespace, route.pod);
    if (worker === undefined) throw new HttpError(404, `pod ${JSON.stringify(route.pod)} not found`);
    const status = this.logContainer(worker, route);
    await this.sessions.run('log', status.id, () => this.sendLog(worker, status, options, response, signal));
  }

  private async sendLog(
    worker: PodWorker,
    status: ContainerStatus,
    options: LogOptions,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const { view, files, runtime } = this.options;
    const source = readLog(
      {
        path: status.logPath,
        running: () => view.get(worker.uid).containers.find((each) => each.id === status.id)?.state === 'running',
        onChange: (listener) => runtime.onChange(() => void view.refresh().then(listener)),
        files,
        signal,
      },
      options,
    );
    const first = await source.next().catch((error: unknown) => {
      const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
      throw missing ? new HttpError(404, `log of container ${JSON.stringify(status.name)} is not there`) : error;
    });
    response.writeHead(200, { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' });
    response.flushHeaders();
    if (first.done === true) {
      response.end();
      return;
    }
    response.write(first.value);
    await pipeline(Readable.from(source), response).catch(() => response.destroy());
  }

  /** Source: pkg/kubelet/kubelet_pods.go validateContainerLogStatus. */
  private logContainer(worker: PodWorker, route: Route): ContainerStatus {
    const { pod, container } = route;
    const spec = worker.pod.spec;
    const known = [...(spec?.containers ?? []), ...(spec?.initContainers ?? []), ...(spec?.ephemeralContainers ?? [])];
    if (!known.some((each) => each.name === container)) {
      throw new HttpError(404, `container ${JSON.stringify(container)} in pod ${JSON.stringify(pod)} is not available`);
    }
    const attempts = attemptsOf(this.options.view.get(worker.uid).containers, container).filter(
      (each) => each.state !== 'created',
    );
    if (flag(route.query, 'previous')) {
      const [latest, ...older] = attempts;
      // While it waits for its restart, the run that just ended is the previous one.
      const waiting = latest?.state === 'exited' && this.waits(worker, container);
      const previous = waiting ? latest : older[0];
      if (previous === undefined) {
        throw new HttpError(
          400,
          `previous terminated container ${JSON.stringify(container)} in pod ${JSON.stringify(pod)} not found`,
        );
      }
      return previous;
    }
    const [latest] = attempts;
    if (latest === undefined) {
      const state = [...(worker.status.containerStatuses ?? []), ...(worker.status.initContainerStatuses ?? [])].find(
        (each) => each.name === container,
      )?.state;
      const reason = state?.waiting?.reason ?? 'ContainerCreating';
      throw new HttpError(
        400,
        `container ${JSON.stringify(container)} in pod ${JSON.stringify(pod)} is waiting to start: ${reason}`,
      );
    }
    return latest;
  }

  private waits(worker: PodWorker, container: string): boolean {
    const statuses = [...(worker.status.containerStatuses ?? []), ...(worker.status.initContainerStatuses ?? [])];
    return statuses.find((each) => each.name === container)?.state?.waiting !== undefined;
  }
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
};

function errorAnswer(error: unknown): { code: number; message: string } {
  if (error instanceof TooManySessions) return { code: 429, message: error.message };
  return error instanceof HttpError
    ? { code: error.code, message: error.message }
    : { code: 500, message: messageOf(error) };
}

const flag = (query: URLSearchParams, name: string): boolean =>
  ['1', 'true', 'True', 'TRUE', 't'].includes(query.get(name) ?? '');

function logOptions(query: URLSearchParams, nowMs: number): LogOptions {
  const number = (name: string): number | undefined => {
    const text = query.get(name);
    if (text === null || text === '') return undefined;
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < 0)
      throw new HttpError(400, `invalid value ${JSON.stringify(text)} for ${name}`);
    return value;
  };
  const seconds = number('sinceSeconds');
  const time = query.get('sinceTime');
  const sinceTime = time === null || time === '' ? undefined : Date.parse(time);
  if (sinceTime !== undefined && Number.isNaN(sinceTime))
    throw new HttpError(400, `invalid value ${JSON.stringify(time)} for sinceTime`);
  const tail = query.get('tailLines') === 'all' ? undefined : number('tailLines');
  const stream = query.get('stream');
  return {
    follow: flag(query, 'follow'),
    tailLines: tail,
    sinceMs: seconds === undefined ? sinceTime : nowMs - seconds * 1000,
    timestamps: flag(query, 'timestamps'),
    limitBytes: number('limitBytes'),
    stream: stream === 'Stdout' || stream === 'Stderr' ? stream : 'All',
  };
}

function sendJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function sendText(response: ServerResponse, body: string | Uint8Array, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(200, { 'content-type': type });
  response.end(body);
}

function runningPod(worker: PodWorker): object {
  const { name, namespace, uid } = worker.pod.metadata ?? {};
  return {
    metadata: { name, namespace, uid },
    spec: {
      containers: (worker.pod.spec?.containers ?? []).map((each) => ({
        name: each.name,
        image: each.image,
        resources: {},
      })),
    },
    status: {},
  };
}
