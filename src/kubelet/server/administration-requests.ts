/**
 * Requests below `/hyperedge/`: state of the store, snapshots, uploads, and restarts of components. Reading the state
 * requires `get` on nodes/proxy. Everything else requires `create`, which also permits commands in every container of
 * the host, so it gives no further rights. Long work is answered with one JSON object per line; the last object has
 * `result` or `error`.
 */

import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { HostAdministration, UploadKind } from '../ports/administration-port.ts';
import { HttpError } from './http-error.ts';
import type { KubeletRequest, KubeletResponse } from './port.ts';
import type { Route } from './routes.ts';
import { NO_SNIFF, sendFile, sendPrivateJson } from './send-file.ts';

/** Interval of progress lines. They also keep proxies from closing a connection as idle. */
const LINE_MS = 1_000;
/** Time after which an upload without progress is ended, because there is only one upload at a time. */
const STALL_MS = 60_000;
/** Number of bytes that must arrive within `STALL_MS`. A client that lost power never closes its connection. */
const MIN_UPLOAD_BYTES = 64 * 1024;
const MAX_NAME = 512;
const STATUS: Readonly<Record<string, number>> = {
  absent: 404,
  'not-found': 404,
  busy: 429,
  conflict: 409,
  'too-large': 413,
  'no-space': 507,
  rejected: 400,
};

export interface AdministrationOptions {
  readonly administration: HostAdministration | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export class AdministrationRequests {
  readonly #options: AdministrationOptions;

  constructor(options: AdministrationOptions) {
    this.#options = options;
  }

  /** Throws HttpErrors before a response was sent. */
  async serve(route: Route, request: KubeletRequest, response: KubeletResponse, signal: AbortSignal): Promise<void> {
    const { administration } = this.#options;
    if (administration === undefined) throw new HttpError(404, 'administration requests are not enabled on this host');
    try {
      await this.#serve(administration, route, request, response, signal);
    } catch (error) {
      const code = error instanceof CodedError ? STATUS[error.code] : undefined;
      if (code === undefined) throw error;
      throw new HttpError(code, messageOf(error));
    }
  }

  async #serve(
    host: HostAdministration,
    { name, container, query, user = '' }: Route,
    request: KubeletRequest,
    response: KubeletResponse,
    signal: AbortSignal,
  ): Promise<void> {
    switch (name) {
      case 'storeState':
        return sendPrivateJson(response, await host.store());
      case 'snapshots':
        if (request.method !== 'POST') return sendPrivateJson(response, await host.snapshots());
        request.resume();
        this.#options.log.info('snapshot requested', { user });
        return this.#save(host, response, signal);
      case 'snapshot':
        request.resume();
        this.#options.log.info('snapshot download requested', { user, file: container });
        return sendFile(response, await host.openSnapshot(container), this.#options.clock, signal);
      case 'imageUploads':
      case 'bundleUploads':
        if (request.method !== 'POST') return sendPrivateJson(response, await host.uploadLimits());
        this.#options.log.info('upload requested', { user, kind: name });
        return this.#upload(host, name === 'imageUploads' ? 'image' : 'bundle', query, request, response, signal);
      case 'restarts':
        if (request.method !== 'POST') return sendPrivateJson(response, await host.restarts());
        request.resume();
        return this.#restart(host, query, user, response, signal);
      default:
        throw new HttpError(404, '404 page not found');
    }
  }

  async #save(host: HostAdministration, response: KubeletResponse, signal: AbortSignal): Promise<void> {
    const saved = host.saveSnapshot();
    // Wait briefly before the first line, so that a refusal is sent as an HTTP status.
    await Promise.race([saved, this.#sleep(LINE_MS / 4)]);
    const stage = async (): Promise<object> => ({ stage: 'saving', bytes: await host.savedBytes() });
    await this.#lines(response, saved, stage, signal);
  }

  /**
   * Restarts a component. The first line has the ID of the restart, with which the client finds the outcome if the
   * connection breaks.
   */
  async #restart(
    host: HostAdministration,
    query: URLSearchParams,
    user: string,
    response: KubeletResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const [component = '', ...more] = query.getAll('component');
    if (component === '' || more.length > 0)
      throw new HttpError(400, 'component: give the name of one component, such as ?component=api');
    const { restart, ended } = await host.restart(component);
    this.#options.log.info('component restart requested', { user, component });
    const outcome = ended.then((result) => {
      if (result.error !== undefined) throw new Error(result.error);
      return result;
    });
    await this.#lines(response, outcome, async () => ({ stage: 'restarting', ...restart }), signal, { atOnce: true });
  }

  async #upload(
    host: HostAdministration,
    kind: UploadKind,
    query: URLSearchParams,
    request: KubeletRequest,
    response: KubeletResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const name = query.get('name') ?? '';
    if (name.length > MAX_NAME) throw new HttpError(400, `name: at most ${MAX_NAME} characters`);
    if (kind === 'bundle' && name !== '')
      throw new HttpError(400, 'name: not allowed for a bundle, which contains its name; omit the parameter');
    const force = query.get('force') ?? 'false';
    if (force !== 'false' && (force !== 'true' || kind !== 'bundle'))
      throw new HttpError(400, 'force: only bundles have this parameter; its value is true or false');
    const length = request.headers['content-length'];
    const upload = {
      kind,
      body: request,
      bytes: length === undefined ? undefined : Number(length),
      name: name === '' ? undefined : name,
      force: force === 'true',
    };
    const received = Promise.withResolvers<void>();
    const stall = new AbortController();
    const endWatch = this.#watchProgress(request, () => stall.abort());
    const imported = host.importUpload(upload, AbortSignal.any([signal, stall.signal]), () => received.resolve());
    try {
      await Promise.race([imported, received.promise]);
    } finally {
      endWatch();
    }
    await this.#lines(response, imported, async () => ({ stage: 'importing' }), signal);
  }

  /** Calls `onStall` if too few bytes arrive while the body is incomplete. Returns a function that ends the watch. */
  #watchProgress(request: KubeletRequest, onStall: () => void): () => void {
    const { clock, log } = this.#options;
    let lastBytes = request.socket.bytesRead;
    const check = (): void => {
      const bytes = request.socket.bytesRead;
      if (!request.complete && bytes - lastBytes < MIN_UPLOAD_BYTES) {
        log.warn('upload ended: the client sends too slowly', { seconds: STALL_MS / 1000, bytes: bytes - lastBytes });
        onStall();
        return;
      }
      lastBytes = bytes;
      timer = clock.setTimer(STALL_MS, check);
    };
    let timer = clock.setTimer(STALL_MS, check);
    return () => timer.cancel();
  }

  /**
   * Sends a progress line at intervals until `work` is settled, then a last line with the outcome. With `atOnce`, the
   * first progress line is sent immediately.
   */
  async #lines(
    response: KubeletResponse,
    work: Promise<object>,
    stage: () => Promise<object>,
    signal: AbortSignal,
    { atOnce = false }: { readonly atOnce?: boolean } = {},
  ): Promise<void> {
    const outcome = work.then(
      (result) => ({ result }),
      (error: unknown) => ({ error: messageOf(error) }),
    );
    response.writeHead(200, { ...NO_SNIFF, 'content-type': 'application/x-ndjson' });
    if (atOnce) response.write(`${JSON.stringify(await stage())}\n`);
    else response.flushHeaders();
    for (;;) {
      const done = await Promise.race([outcome, this.#sleep(LINE_MS)]);
      if (signal.aborted) return;
      if (done !== undefined) {
        response.end(`${JSON.stringify(done)}\n`);
        return;
      }
      response.write(`${JSON.stringify(await stage())}\n`);
    }
  }

  #sleep(ms: number): Promise<undefined> {
    return new Promise((resolve) => this.#options.clock.setTimer(ms, () => resolve(undefined)));
  }
}
