/** The connection of this tab to the API, shared by all pages. */
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import { Access } from '../data/api/access.ts';
import { Api } from '../data/api/api.ts';
import { FrameBatcher } from '../data/watch/frames.ts';
import { FeedPool } from '../data/watch/pool.ts';
import { StreamLimit } from '../data/watch/stream-limit.ts';
import { sessionState } from '../session/login.ts';
import { request } from '../session/request.ts';

/** Time after which the watches of a hidden page end. */
const HIDDEN_MS = 60_000;

/**
 * Watches over HTTP/1.1, for example behind a proxy that inspects TLS. Browsers open at most six connections to a
 * server, and requests and downloads of logs need the others.
 */
const HTTP1_WATCHES = 3;

export const clock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, callback) => {
    const id = setTimeout(callback, delayMs);
    return { cancel: () => clearTimeout(id) };
  },
};

export const random: RandomSource = {
  random: () => Math.random(),
  uuid: () => crypto.randomUUID(),
  bytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
};

/** A hidden page gets no animation frames, so it updates once a second. */
const frames = new FrameBatcher((run) => {
  if (document.visibilityState === 'visible') requestAnimationFrame(run);
  else setTimeout(run, 1_000);
});

export const api = new Api(request, clock);
export const access = new Access(api, clock);
const [page] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
const streams = new StreamLimit(page?.nextHopProtocol === 'http/1.1' ? HTTP1_WATCHES : Number.POSITIVE_INFINITY);
export const feedPool = new FeedPool({ api, clock, random, frames, streams });

let hiding: ReturnType<typeof setTimeout> | undefined;
document.addEventListener('visibilitychange', () => {
  clearTimeout(hiding);
  if (document.visibilityState === 'hidden') hiding = setTimeout(() => feedPool.pause(), HIDDEN_MS);
  else feedPool.resume();
});
addEventListener('online', () => feedPool.reconnect());
sessionState.subscribe((state) => {
  if (state === 'in') feedPool.reconnect();
});
