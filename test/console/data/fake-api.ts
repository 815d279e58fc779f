/** A scripted API server: each request takes the next answer of its path. Watches are streams that tests write to. */
import { Api } from '../../../src/console/data/api/api.ts';
import type { FeedContext } from '../../../src/console/data/watch/feed.ts';
import { FrameBatcher } from '../../../src/console/data/watch/frames.ts';
import { StreamLimit } from '../../../src/console/data/watch/stream-limit.ts';
import { ManualClock, seededRandom } from '../../client/clocks.ts';

export interface Watch {
  readonly url: URL;
  event(type: string, object: unknown): void;
  /** Simulates that the server ends the stream. */
  end(): void;
  /** Simulates that the connection breaks. */
  fail(): void;
  readonly isAborted: boolean;
}

export type Answer = (url: URL, request: RequestInit) => Response | Promise<Response>;

export class FakeApi {
  readonly requests: { readonly url: URL; readonly request: RequestInit }[] = [];
  readonly watches: Watch[] = [];
  readonly api: Api;
  readonly clock = new ManualClock();
  answer: Answer = () => json({ kind: 'Status', code: 404, reason: 'NotFound', message: 'not found' }, 404);
  isDown = false;

  constructor() {
    this.api = new Api((path, request) => this.#fetch(path, request), this.clock);
  }

  async #fetch(path: string, request: RequestInit): Promise<Response> {
    const url = new URL(path, 'https://api.test');
    this.requests.push({ url, request });
    request.signal?.throwIfAborted();
    if (this.isDown) throw new TypeError('fetch failed');
    if (url.searchParams.get('watch') === 'true') return this.#watch(url, request);
    return this.answer(url, request);
  }

  #watch(url: URL, request: RequestInit): Response {
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (each) => {
        controller = each;
      },
    });
    let isOpen = true;
    request.signal?.addEventListener('abort', () => {
      if (isOpen) controller?.error(new DOMException('aborted', 'AbortError'));
      isOpen = false;
    });
    this.watches.push({
      url,
      event: (type, object) => {
        if (isOpen) controller?.enqueue(new TextEncoder().encode(`${JSON.stringify({ type, object })}\n`));
      },
      end: () => {
        isOpen = false;
        controller?.close();
      },
      fail: () => {
        isOpen = false;
        controller?.error(new TypeError('network error'));
      },
      get isAborted() {
        return request.signal?.aborted === true;
      },
    });
    return new Response(body, { status: 200 });
  }
}

export function json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json' } });
}

export const pod = (name: string, resourceVersion: string, labels: Record<string, string> = {}): object => ({
  metadata: { name, namespace: 'n', resourceVersion, labels },
});

export const podList = (resourceVersion: string, ...items: object[]): object => ({
  kind: 'PodList',
  metadata: { resourceVersion },
  items,
});

/** Frames that run when the test calls `frame`. */
export function scene(): FeedContext & { server: FakeApi; clock: ManualClock; frame: () => void } {
  const server = new FakeApi();
  const due: (() => void)[] = [];
  return {
    server,
    api: server.api,
    clock: server.clock,
    random: seededRandom(1),
    frames: new FrameBatcher((run) => void due.push(run)),
    streams: new StreamLimit(Number.POSITIVE_INFINITY),
    frame: () => {
      for (const run of due.splice(0)) run();
    },
  };
}
