/** The connection of this tab to the API, shared by all pages. */
import type { Clock, RandomSource } from '../../base/clock.ts';
import { Access } from '../data/api/access.ts';
import { Api } from '../data/api/api.ts';
import { FrameBatcher } from '../data/watch/frames.ts';
import { FeedPool } from '../data/watch/pool.ts';
import { sessionState } from '../session/login.ts';
import { request } from '../session/request.ts';

/** Time after which the watches of a hidden page end. */
const HIDDEN_MS = 60_000;

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
export const feeds = new FeedPool({ api, clock, random, frames });

let hiding: ReturnType<typeof setTimeout> | undefined;
document.addEventListener('visibilitychange', () => {
  clearTimeout(hiding);
  if (document.visibilityState === 'hidden') hiding = setTimeout(() => feeds.pause(), HIDDEN_MS);
  else feeds.resume();
});
addEventListener('online', () => feeds.reconnect());
sessionState.subscribe((state) => {
  if (state === 'in') feeds.reconnect();
});
