/**
 * The control socket of the host process, for commands on the same host: HTTP on a Unix socket with mode 0600. It
 * serves status and restarts of control-plane components without an API server.
 */
import { chmod, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { StartStage } from '../../base/services.ts';
import type { KubeletReport } from '../../kubelet/index.ts';
import type { HostAlertReport } from '../alerts/alerts.ts';
import type { PendingRestart } from '../config/pending-restart.ts';
import type { FailedRevision } from '../openshift/revision-archive.ts';
import type { VersionReport } from '../run/version-skew.ts';
import type { StoreLayout } from './store-layout.ts';
import { MAX_SUBMITTED_BYTES, type SubmittedPods } from './submitted-pods.ts';

export interface HostStatus {
  readonly pid: number;
  readonly version: string;
  readonly kubernetes: VersionReport;
  readonly root: string;
  readonly node: string;
  readonly nodeIp: string;
  readonly startedAt: string;
  /** Services of the host process in the order of their start. Absent in the status of an earlier release. */
  readonly startStages?: readonly StartStage[];
  readonly ready: boolean;
  /** Reason why the host is not ready; absent if it is ready. */
  readonly notReady?: string;
  readonly cgroupDriver: string;
  readonly kubeconfig: string;
  readonly components: readonly ComponentStatus[];
  readonly failedRevisions: readonly FailedRevision[];
  /** Layout of the store; absent on hosts without a member of the store. */
  readonly store?: StoreLayout;
  /** Changes of the bootstrap file since the start of the host process; absent if there are none. */
  readonly pendingRestart?: PendingRestart;
}

export interface ComponentStatus {
  readonly name: string;
  readonly state: string;
  readonly restarts: number;
  readonly startedAt: string;
  readonly pid: number;
}

export interface ControlHandlers {
  status(): Promise<HostStatus>;
  /**
   * Stops the component's container, so that the kubelet restarts it, and resolves when the component is ready. Throws
   * CodedError 'not-found', 'not-started', and 'revision-failed' if the component does not start with the current
   * files.
   */
  restart(component: string): Promise<void>;
  alerts(): HostAlertReport;
  /** Makes the next stop of the host process end its pods, which otherwise continue. */
  endPods(): void;
  reloadSnapshots(): Promise<void>;
  readonly submitted: SubmittedPods;
  /**
   * Pods of this host with their states and the kubelet's last events. The kubelet reports them without the API server.
   */
  kubelet(): KubeletReport;
}

export interface ControlServer {
  stop(): Promise<void>;
}

const REQUEST_TIMEOUT_MS = 30_000;
/** Time limit of a restart. It covers the longest trial of a revision. */
export const RESTART_TIMEOUT_MS = 360_000;

/** Listens on the Unix socket at the path `socket`. Replaces a socket file that a killed process has left. */
export async function serveControl(socket: string, handlers: ControlHandlers, log: Log): Promise<ControlServer> {
  await rm(socket, { force: true });
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS, maxHeaderSize: 8192 }, (incoming, response) => {
    void answer(incoming, response, handlers, log);
  });
  server.maxConnections = 8;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socket, resolve);
  });
  server.on('error', (error) => log.warn('control socket failed', { error: error.message }));
  await chmod(socket, 0o600);
  return {
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  incoming: IncomingMessage,
  response: ServerResponse,
  handlers: ControlHandlers,
  log: Log,
): Promise<void> {
  const reply = (code: number, body: unknown): void => {
    response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  try {
    // The body is read for every request: an unread body would be parsed as the next request of the connection.
    const body = await bodyOf(incoming);
    const restart = /^\/restart\/([a-z]+)$/.exec(incoming.url ?? '');
    if (incoming.method === 'GET' && incoming.url === '/status') reply(200, await handlers.status());
    else if (incoming.method === 'GET' && incoming.url === '/alerts') reply(200, handlers.alerts());
    else if (incoming.method === 'POST' && restart !== null) {
      log.info('component restart requested', { component: restart[1] });
      await handlers.restart(restart[1] ?? '');
      reply(200, {});
    } else if (incoming.method === 'POST' && incoming.url === '/end-pods') {
      handlers.endPods();
      reply(200, {});
    } else if (incoming.method === 'POST' && incoming.url === '/snapshots') {
      await handlers.reloadSnapshots();
      reply(200, {});
    } else if (incoming.method === 'GET' && incoming.url === '/kubelet') reply(200, handlers.kubelet());
    else if (incoming.url === '/pods' || incoming.url?.startsWith('/pods/') === true) {
      await answerPods(incoming, body, handlers.submitted, reply);
    } else reply(404, { error: 'not found' });
  } catch (error) {
    const code = error instanceof CodedError ? STATUS_OF[error.code] : undefined;
    reply(code ?? 500, { error: messageOf(error) });
  }
}

const STATUS_OF: Readonly<Record<string, number>> = { 'not-found': 404, 'static-pod': 422, 'too-large': 413 };

/**
 * The submit API. GET /pods lists the manifests, POST /pods submits a manifest, DELETE /pods/NAMESPACE/NAME removes a
 * manifest.
 */
async function answerPods(
  incoming: IncomingMessage,
  body: string,
  submitted: SubmittedPods,
  reply: (code: number, body: unknown) => void,
): Promise<void> {
  const one = /^\/pods\/([a-z0-9.-]+)\/([a-z0-9.-]+)$/.exec(incoming.url ?? '');
  if (incoming.method === 'GET' && one === null)
    reply(200, { kind: 'PodList', apiVersion: 'v1', items: submitted.list() });
  else if (incoming.method === 'POST' && one === null) reply(201, await submitted.submit(body));
  else if (incoming.method === 'DELETE' && one !== null) {
    await submitted.remove(one[1] ?? '', one[2] ?? '');
    reply(200, {});
  } else reply(405, { error: 'GET and POST /pods, DELETE /pods/NAMESPACE/NAME' });
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= MAX_SUBMITTED_BYTES) chunks.push(chunk);
  }
  if (length > MAX_SUBMITTED_BYTES) throw new CodedError('too-large', `larger than ${MAX_SUBMITTED_BYTES} bytes`);
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * Sends a request to the running host process. Throws CodedError 'not-running' if there is none, and 'failed' with the
 * error in its response.
 */
export function callControl<T>(
  socket: string,
  method: 'GET' | 'POST',
  path: string,
  timeout = REQUEST_TIMEOUT_MS,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath: socket, method, path, timeout }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => {
        try {
          const body = JSON.parse(text);
          if (response.statusCode === 200) resolve(body);
          else reject(new CodedError('failed', String(body.error)));
        } catch (error) {
          reject(new CodedError('failed', `${socket}: the answer is not JSON`, { cause: error }));
        }
      });
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer in time')));
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      const absent = error.code === 'ENOENT' || error.code === 'ECONNREFUSED';
      reject(
        absent
          ? new CodedError(
              'not-running',
              `the host process does not run here (no answer at ${socket}); run systemctl start hyperedge, or name its --root`,
            )
          : new CodedError('failed', `${socket}: ${error.message}`, { cause: error }),
      );
    });
    outgoing.end();
  });
}
