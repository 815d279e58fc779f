/** HTTPS server of the kubelet. Source: pkg/kubelet/server/server.go. */
import type { Duplex } from 'node:stream';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { Runtime } from '../../runtime/port.ts';
import { endSocket } from '../../wire/connections/end-socket.ts';
import type { GateLimits } from '../../wire/connections/gate.ts';
import type { KubeletConfig } from '../config/kubelet-config.ts';
import type { ServingCertificate } from '../deps.ts';
import type { NodeDevices } from '../devices/node-devices.ts';
import type { UsageRecorder } from '../history/recorder.ts';
import type { StreamingServer } from '../io/streaming/port.ts';
import type { PodTable } from '../pods/pod-table.ts';
import type { PodWorker } from '../pods/pod-worker.ts';
import type { RuntimeView } from '../pods/runtime-view.ts';
import type { FileWatch } from '../port.ts';
import type { HostAdministration } from '../ports/administration-port.ts';
import type { LogFiles } from '../ports/files-port.ts';
import type { HostDoctor } from '../ports/host-doctor-port.ts';
import type { HostLogSource } from '../ports/host-logs-port.ts';
import type { Access, Caller } from './access.ts';
import { AdministrationRequests } from './administration-requests.ts';
import { checkpointContainer } from './checkpoint-requests.ts';
import { configz } from './configz.ts';
import { DoctorRequests } from './doctor-requests.ts';
import { sendHistory } from './history-requests.ts';
import { HostLogRequests } from './host-log-requests.ts';
import { errorAnswer, HttpError, rawErrorAnswer, sendRefusal } from './http-error.ts';
import { LogRequests } from './log-requests.ts';
import type {
  KubeletConnection,
  KubeletListen,
  KubeletListener,
  KubeletRequest,
  KubeletResponse,
  KubeletTls,
} from './port.ts';
import { RecordingRequests } from './recording-requests.ts';
import { RigRequests } from './rigs.ts';
import { runningContainer, workerOf } from './route-target.ts';
import { type Route, routeOf } from './routes.ts';
import { Sessions } from './sessions.ts';
import type { StatsProvider } from './stats.ts';
import { StreamRequests } from './streams.ts';

export interface KubeletServerOptions {
  readonly listen: KubeletListen;
  readonly address: string;
  readonly port: number;
  readonly certificate: () => Promise<ServingCertificate>;
  readonly clientCa: () => Promise<string>;
  readonly access: Access;
  readonly pods: Pick<PodTable, 'byName' | 'workers'>;
  readonly view: RuntimeView;
  readonly runtime: Runtime;
  readonly streaming: StreamingServer;
  readonly devices: NodeDevices | undefined;
  readonly stats: StatsProvider;
  readonly config: KubeletConfig;
  readonly probeMetrics: () => string;
  readonly moreMetrics: () => string;
  /** If undefined, no history is kept. */
  readonly history: Pick<UsageRecorder, 'answer'> | undefined;
  readonly hostLogs: HostLogSource;
  /** If undefined, the paths below `/hyperedge/` are not found. */
  readonly administration?: HostAdministration | undefined;
  /** If undefined, the checks of the host cannot be requested. */
  readonly doctor: HostDoctor | undefined;
  readonly files: LogFiles;
  readonly fileWatch: FileWatch;
  readonly clock: Clock;
  readonly log: Log;
}

/** User of the API server's client certificate. */
const API_SERVER = 'system:kube-apiserver';
/** Interval between certificate reloads. Certificates are renewed long before they expire. */
const RELOAD_MS = 10_000;
const HEADERS_TIMEOUT_MS = 15_000;
/** Limits per kind of client. Clients are API servers and metrics collectors. */
const LIMITS: GateLimits = {
  authenticated: 1024,
  unauthenticated: 32,
  idleMs: 90_000,
  unauthenticatedIdleMs: 30_000,
  handshakeMs: 32_000,
};
const EXPOSITION = 'text/plain; version=0.0.4; charset=utf-8';
const RUN_TIMEOUT_MS = 600_000;
const RUN_OUTPUT_BYTES = 1024 * 1024;

export class KubeletServer {
  private readonly options: KubeletServerOptions;
  private listener: KubeletListener | undefined;
  private timer: Timer | undefined;
  private current: KubeletTls | undefined;
  private readonly sessions = new Sessions();
  private readonly streams: StreamRequests;
  private readonly logs: LogRequests;
  private readonly hostLogs: HostLogRequests;
  private readonly rigs: RigRequests;
  private readonly recordings: RecordingRequests;
  private readonly administration: AdministrationRequests;
  private readonly doctor: DoctorRequests;

  constructor(options: KubeletServerOptions) {
    this.options = options;
    this.rigs = new RigRequests(options);
    this.recordings = new RecordingRequests(options);
    const { administration, clock, log } = options;
    this.administration = new AdministrationRequests({ administration, clock, log });
    this.streams = new StreamRequests({ ...options, rigs: this.rigs }, this.sessions);
    this.logs = new LogRequests(options, this.sessions);
    this.hostLogs = new HostLogRequests(options.hostLogs);
    this.doctor = new DoctorRequests(options);
  }

  /** Resolves with the port when the server listens. */
  async start(): Promise<number> {
    const { address, port, listen } = this.options;
    this.listener = await listen({
      address,
      port,
      tls: await this.tls(),
      limits: LIMITS,
      headersTimeoutMs: HEADERS_TIMEOUT_MS,
      request: (request, response, connection) => void this.answer(request, response, connection),
      upgrade: (request, socket, head, connection) => void this.upgrade(request, socket, head, connection),
    });
    this.arm();
    return this.listener.port;
  }

  async stop(): Promise<void> {
    this.timer?.cancel();
    this.doctor.stop();
    await this.options.administration?.stop();
    await this.listener?.close();
  }

  private async tls(): Promise<KubeletTls> {
    const [{ cert, key }, ca] = await Promise.all([this.options.certificate(), this.options.clientCa()]);
    return { cert, key, ca };
  }

  /** Uses the renewed certificate for new connections. Logs a failure. */
  async reload(): Promise<void> {
    try {
      const next = await this.tls();
      const { current } = this;
      if (next.cert === current?.cert && next.key === current.key && next.ca === current.ca) return;
      this.listener?.updateTls(next);
      this.current = next;
    } catch (error) {
      this.options.log.warn('serving certificate not reloaded', { error: messageOf(error) });
    }
  }

  private arm(): void {
    this.timer = this.options.clock.setTimer(RELOAD_MS, () => void this.reload().finally(() => this.arm()));
  }

  private async answer(
    request: KubeletRequest,
    response: KubeletResponse,
    connection: KubeletConnection,
  ): Promise<void> {
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
      sendRefusal(request, response, code, message, this.options.clock);
    }
  }

  /** Returns the route after authentication and authorization. */
  private async admit(request: KubeletRequest, connection: KubeletConnection): Promise<Route> {
    const { access } = this.options;
    const caller = await access.authenticate(request.headers.authorization, connection.peer());
    connection.identified(caller === undefined ? 'refused' : 'user');
    if (caller === undefined) throw new HttpError(401, 'Unauthorized');
    const route = routeOf(request.method ?? 'GET', request.url ?? '/');
    if (route === undefined) throw new HttpError(404, '404 page not found');
    if (!(await access.authorize(caller, route.verb, route.subresources))) {
      const subresources = `[${route.subresources.join(' ')}]`;
      throw new HttpError(
        403,
        `Forbidden (user=${caller.name}, verb=${route.verb}, resource=nodes, subresource(s)=${subresources})`,
      );
    }
    if (!route.methods.includes(request.method ?? 'GET')) throw new HttpError(405, 'Method Not Allowed');
    return { ...route, user: userOf(caller, request) };
  }

  private async serve(
    route: Route,
    request: KubeletRequest,
    response: KubeletResponse,
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
        sendText(response, await stats.resourceMetrics(), EXPOSITION);
        return;
      case 'cadvisorMetrics':
        sendText(response, await stats.cadvisorMetrics(), EXPOSITION);
        return;
      case 'probeMetrics':
        sendText(response, this.options.probeMetrics(), EXPOSITION);
        return;
      case 'usageHistory':
        await sendHistory(response, this.options.history, route.query, signal);
        return;
      case 'metrics':
        sendText(response, stats.ownMetrics() + this.options.moreMetrics(), EXPOSITION);
        return;
      case 'configz':
        sendJson(response, configz(this.options.config));
        return;
      case 'containerLogs':
        await this.logs.serve(route, response, signal);
        return;
      case 'hostLogs':
        await this.hostLogs.serve(route.container, route.query, response, signal);
        return;
      case 'storeState':
      case 'snapshots':
      case 'snapshot':
      case 'imageUploads':
      case 'bundleUploads':
      case 'restarts':
        await this.administration.serve(route, request, response, signal);
        return;
      case 'doctor':
        request.resume();
        await this.doctor.serve(response, signal);
        return;
      case 'checkpoint':
        sendJson(response, await checkpointContainer(this.options, route, this.options.clock.nowMs()));
        return;
      case 'run':
        await this.serveRun(route, response);
        return;
      case 'rigPower':
        if (request.method !== 'POST') throw new HttpError(405, 'Method Not Allowed');
        sendText(response, await this.rigs.power(route, signal));
        return;
      case 'rigRecordings':
        request.resume();
        await this.recordings.serve(route, response, signal);
        return;
      case 'rigConsole':
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
    request: KubeletRequest,
    socket: Duplex,
    head: Uint8Array,
    connection: KubeletConnection,
  ): Promise<void> {
    socket.on('error', () => socket.destroy());
    try {
      const route = await this.admit(request, connection);
      await this.streams.serve(route, request, socket, head);
    } catch (error) {
      endSocket(socket, rawErrorAnswer(error));
    }
  }

  private async serveRun(route: Route, response: KubeletResponse): Promise<void> {
    const status = runningContainer(this.options.view, workerOf(this.options.pods, route), route.container);
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
}

/**
 * Name of the user for the log. The API server adds its user's name to requests for the administration of the host, and
 * removes this header from the requests of its own clients.
 */
function userOf(caller: Caller, { headers }: KubeletRequest): string {
  const forwarded = headers['x-remote-user'];
  if (caller.name !== API_SERVER || typeof forwarded !== 'string') return caller.name;
  try {
    return decodeURIComponent(forwarded);
  } catch {
    return caller.name;
  }
}

function sendJson(response: KubeletResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function sendText(response: KubeletResponse, body: string | Uint8Array, type = 'text/plain; charset=utf-8'): void {
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
