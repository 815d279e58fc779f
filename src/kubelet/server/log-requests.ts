import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '../../base/time/clock.ts';
import type { ContainerStatus, Runtime } from '../../runtime/port.ts';
import type { PodTable } from '../pods/pod-table.ts';
import type { PodWorker } from '../pods/pod-worker.ts';
import type { RuntimeView } from '../pods/runtime-view.ts';
import type { FileWatch } from '../port.ts';
import type { LogFiles } from '../ports/files-port.ts';
import { type LogOptions, readLog } from './container-logs.ts';
import { HttpError } from './http-error.ts';
import type { KubeletResponse } from './port.ts';
import { logContainer } from './route-target.ts';
import { flag, type Route } from './routes.ts';
import type { Sessions } from './sessions.ts';

export interface LogRequestsOptions {
  readonly pods: Pick<PodTable, 'byName'>;
  readonly view: RuntimeView;
  readonly runtime: Runtime;
  readonly files: LogFiles;
  readonly fileWatch: FileWatch;
  readonly clock: Clock;
}

/** Handles `/containerLogs` requests. */
export class LogRequests {
  readonly #options: LogRequestsOptions;
  readonly #sessions: Sessions;

  constructor(options: LogRequestsOptions, sessions: Sessions) {
    this.#options = options;
    this.#sessions = sessions;
  }

  async serve(route: Route, response: KubeletResponse, signal: AbortSignal): Promise<void> {
    const options = logOptions(route.query, this.#options.clock.nowMs());
    const worker = this.#options.pods.byName(route.namespace, route.pod);
    if (worker === undefined) throw new HttpError(404, `pod ${JSON.stringify(route.pod)} not found`);
    const status = logContainer(this.#options.view, worker, route);
    await this.#sessions.run('log', status.id, () => this.#send(worker, status, options, response, signal));
  }

  async #send(
    worker: PodWorker,
    status: ContainerStatus,
    options: LogOptions,
    response: KubeletResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const { view, files, fileWatch, runtime } = this.#options;
    const source = readLog(
      {
        path: status.logPath,
        running: () => view.get(worker.uid).containers.find((each) => each.id === status.id)?.state === 'running',
        onChange: (listener) => runtime.onChange(() => void view.refresh().then(listener)),
        files,
        fileWatch,
        signal,
      },
      options,
    );
    const first = await source.next().catch((error: unknown) => {
      const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
      throw missing ? new HttpError(404, `log of container ${JSON.stringify(status.name)} does not exist`) : error;
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
}

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
