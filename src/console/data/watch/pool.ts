/** Feeds that pages share: one watch per collection and selector, however many views show it. */
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import type { Timer } from '../../../base/time/clock.ts';
import { collectionPath } from '../../../client/resource-path.ts';
import { Feed, type FeedContext, type FeedSource } from './feed.ts';

export interface FeedScope {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** Time for which a feed without views is kept, so that a view that is entered again finds it. */
const LINGER_MS = 10_000;

interface Shared<T> {
  readonly feed: Feed<T>;
  users: number;
  linger: Timer | undefined;
}

export interface Lease<T> {
  readonly feed: Feed<T>;
  release(): void;
}

export class FeedPool {
  readonly #context: FeedContext;
  readonly #feeds = new Map<string, Shared<unknown>>();
  #isPaused = false;

  constructor(context: FeedContext) {
    this.#context = context;
  }

  /** Number of collections that are watched. */
  get size(): number {
    return this.#feeds.size;
  }

  acquire<T extends KubeObject>(type: ResourceType<T>, scope: FeedScope = {}): Lease<T> {
    const { namespace, labelSelector, fieldSelector } = scope;
    return this.acquireSource<T>({ path: collectionPath(type, namespace), labelSelector, fieldSelector });
  }

  /** Requires that sources with the same path, selectors and media type convert objects in the same way. */
  acquireSource<T>(source: FeedSource<T>): Lease<T> {
    const key = JSON.stringify([source.path, source.labelSelector, source.fieldSelector, source.accept]);
    let shared = this.#feeds.get(key) as Shared<T> | undefined;
    if (shared === undefined) {
      shared = { feed: new Feed<T>(source, this.#context), users: 0, linger: undefined };
      this.#feeds.set(key, shared as Shared<unknown>);
      if (!this.#isPaused) shared.feed.start();
    }
    shared.users++;
    shared.linger?.cancel();
    shared.linger = undefined;
    const held = shared;
    let isReleased = false;
    return {
      feed: held.feed,
      release: () => {
        if (isReleased) return;
        isReleased = true;
        held.users--;
        if (held.users > 0) return;
        held.linger = this.#context.clock.setTimer(LINGER_MS, () => {
          held.feed.stop();
          this.#feeds.delete(key);
        });
      },
    };
  }

  /** Pauses all watches. Called when the page is hidden. */
  pause(): void {
    this.#isPaused = true;
    for (const { feed } of this.#feeds.values()) feed.pause();
  }

  resume(): void {
    this.#isPaused = false;
    for (const { feed } of this.#feeds.values()) feed.start();
  }

  /** Connects all feeds again without delay. Called for the `online` event. */
  reconnect(): void {
    for (const { feed } of this.#feeds.values()) feed.reconnect();
  }

  /** Ends all feeds. Called at logout. */
  close(): void {
    for (const { feed, linger } of this.#feeds.values()) {
      linger?.cancel();
      feed.stop();
    }
    this.#feeds.clear();
  }
}
