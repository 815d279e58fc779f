import type { Duplex } from 'node:stream';
import type { ByteStream, Runtime } from '../../runtime/port.ts';
import { readySandboxes } from '../core/pod-plan/snapshot.ts';
import type { StreamingServer } from '../io/streaming/port.ts';
import type { PodTable } from '../pods/pod-table.ts';
import type { RuntimeView } from '../pods/runtime-view.ts';
import { HttpError } from './http-error.ts';
import type { KubeletRequest } from './port.ts';
import type { RigRequests } from './rigs.ts';
import { runningContainer, workerOf } from './route-target.ts';
import { flag, type Route } from './routes.ts';
import type { Sessions } from './sessions.ts';

export interface StreamRequestsOptions {
  readonly rigs: RigRequests;
  readonly pods: Pick<PodTable, 'byName'>;
  readonly view: RuntimeView;
  readonly runtime: Runtime;
  readonly streaming: StreamingServer;
}

/** Serves exec, attach and port forwarding on connections that requested an upgrade. */
export class StreamRequests {
  readonly #options: StreamRequestsOptions;
  readonly #sessions: Sessions;

  constructor(options: StreamRequestsOptions, sessions: Sessions) {
    this.#options = options;
    this.#sessions = sessions;
  }

  /** Resolves at the end of the session. Throws HttpErrors before a response was sent. */
  async serve(route: Route, request: KubeletRequest, socket: Duplex, head: Uint8Array): Promise<void> {
    const { pods, view, streaming, runtime } = this.#options;
    const query = route.query;
    if (route.name === 'exec' || route.name === 'attach') {
      const worker = workerOf(pods, route);
      const status = runningContainer(view, worker, route.container);
      const requested = {
        stdin: flag(query, 'input'),
        stdout: flag(query, 'output'),
        stderr: flag(query, 'error'),
        tty: flag(query, 'tty'),
      };
      const command = query.getAll('command');
      if (route.name === 'exec' && command.length === 0)
        throw new HttpError(400, 'you must specify at least 1 of command');
      await this.#sessions.run(route.name, status.id, () =>
        streaming.handleRemoteCommand(request, socket, head, requested, (streams) =>
          route.name === 'exec' ? runtime.exec(status.id, { ...streams, command }) : runtime.attach(status.id, streams),
        ),
      );
      return;
    }
    if (route.name === 'portForward') {
      const worker = workerOf(pods, route);
      const [sandbox] = readySandboxes(view.get(worker.uid).sandboxes);
      if (sandbox === undefined) throw new HttpError(404, `pod ${JSON.stringify(route.pod)} is not running`);
      await this.#sessions.run('portForward', sandbox.id, () =>
        streaming.handlePortForward(request, socket, head, (port) => this.#connect(sandbox.id, port)),
      );
      return;
    }
    if (route.name === 'rigConsole') {
      await this.#sessions.run('exec', `rig ${route.rig ?? ''}`, () =>
        this.#options.rigs.console(route, request, socket, head),
      );
      return;
    }
    throw new HttpError(400, 'the path does not support streaming');
  }

  async #connect(sandboxId: string, port: number): Promise<ByteStream> {
    const close = this.#sessions.open('connection', sandboxId);
    try {
      const stream = await this.#options.runtime.portForward(sandboxId, port);
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
}
