import type { Pod } from 'kubernetes-types/core/v1';
import { ApiError, isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { Clock, Timer } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { ApiClient } from '../../../client/types.ts';
import { canonicalJson } from '../../../core/podplan/hash.ts';
import { type PodStatus, RESIZE_CONDITIONS } from '../../../core/podplan/status.ts';
import { essentialPatch, statusPatch } from './status-patch.ts';

interface Entry {
  /**
   * The pod object at the API that carries this status: the pod itself or its mirror; undefined while there is none.
   */
  target: Pod | undefined;
  status: PodStatus | undefined;
  /** The pod is over and holds nothing: its object can go. */
  finished: boolean;
  syncing: boolean;
  dirty: boolean;
  failures: number;
  timer: Timer | undefined;
  /** Until it fires, what is set of a start under way waits for what comes next. */
  start: Timer | undefined;
  /** The status that the API refused, as text, and the monotonic time until which it is not sent again. */
  refusal: { readonly status: string; readonly untilMs: number } | undefined;
  /** Monotonic time at which the graceful deletion was first seen. */
  deletingMs: number | undefined;
}

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 1_000;
/**
 * How long the conditions of a pod whose containers are being created wait for the next change: most pods run before,
 * and a write costs the API server and each of its watchers more than the kubelet.
 */
const START_MS = 500;
const CREATING: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing']);
const WRITTEN_POLL_MS = 20;
/** What refuses a status (validation, an admission policy) may change, but not soon. */
const REFUSED_RETRY_MS = 60_000;
const MAX_DOUBLINGS = 16;
/**
 * A pod that ends at once stays visible as terminating for this long: a client that deletes gracefully and then reads
 * expects to find it, as upstream's conformance suite does. Upstream's kubelet takes about a second.
 */
const TERMINATING_MS = 250;

/**
 * Brings statuses to the API: one pod at a time in order, the latest wins, and only differences. Source:
 * pkg/kubelet/status.
 */
export class StatusManager {
  private client: ApiClient | undefined;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly entries = new Map<string, Entry>();

  constructor(options: { readonly clock: Clock; readonly log: Log }) {
    this.clock = options.clock;
    this.log = options.log;
  }

  connect(client: ApiClient): void {
    this.client = client;
    for (const uid of this.entries.keys()) this.kick(uid);
  }

  /** `uid` is the kubelet's (a static pod's own, not its mirror's). */
  set(uid: string, status: PodStatus): void {
    const entry = this.entry(uid);
    entry.status = status;
    const { metadata, status: known } = entry.target ?? {};
    // After a power cut the API still shows a pod that runs.
    const isFirst = known?.phase === undefined || known.phase === 'Pending';
    if (!isFirst || !isStarting(status) || metadata?.deletionTimestamp !== undefined) this.kick(uid);
    else entry.start ??= this.clock.setTimer(START_MS, () => this.kick(uid));
  }

  /** The object at the API was seen, changed or is gone. */
  setTarget(uid: string, target: Pod | undefined): void {
    const entry = this.entry(uid);
    entry.target = target;
    if ((target?.metadata?.deletionGracePeriodSeconds ?? 0) > 0) entry.deletingMs ??= this.clock.monotonicMs();
    this.kick(uid);
  }

  finish(uid: string): void {
    this.entry(uid).finished = true;
    this.kick(uid);
  }

  forget(uid: string): void {
    const entry = this.entries.get(uid);
    entry?.timer?.cancel();
    entry?.start?.cancel();
    this.entries.delete(uid);
  }

  /** Resolves when what was set of these pods has reached the API. */
  async written(uids: readonly string[]): Promise<void> {
    const entries = (): Entry[] => uids.flatMap((uid) => this.entries.get(uid) ?? []);
    while (
      this.client !== undefined &&
      entries().some(({ syncing, dirty, timer, start }) => syncing || dirty || timer || start)
    )
      await new Promise<void>((resolve) => this.clock.setTimer(WRITTEN_POLL_MS, resolve));
  }

  /** Nothing more reaches the API, whatever is still set: pods that a stopping host ends are not over. */
  stop(): void {
    this.client = undefined;
    for (const uid of [...this.entries.keys()]) this.forget(uid);
  }

  private entry(uid: string): Entry {
    let entry = this.entries.get(uid);
    if (entry === undefined) {
      entry = {
        target: undefined,
        status: undefined,
        finished: false,
        syncing: false,
        dirty: false,
        failures: 0,
        timer: undefined,
        start: undefined,
        refusal: undefined,
        deletingMs: undefined,
      };
      this.entries.set(uid, entry);
    }
    return entry;
  }

  private kick(uid: string): void {
    const entry = this.entries.get(uid);
    if (entry === undefined || this.client === undefined) return;
    entry.start?.cancel();
    entry.start = undefined;
    entry.dirty = true;
    if (entry.syncing) return;
    entry.timer?.cancel();
    entry.timer = undefined;
    entry.syncing = true;
    void this.run(uid, entry, this.client);
  }

  private async run(uid: string, entry: Entry, client: ApiClient): Promise<void> {
    try {
      while (entry.dirty) {
        entry.dirty = false;
        await this.sync(uid, entry, client);
      }
      entry.failures = 0;
      const { refusal } = entry;
      if (refusal !== undefined) this.retry(uid, entry, Math.max(0, refusal.untilMs - this.clock.monotonicMs()));
    } catch (error) {
      const most = isRefusal(error) ? REFUSED_RETRY_MS : MAX_RETRY_MS;
      const delay = Math.min(most, FIRST_RETRY_MS * 2 ** Math.min(entry.failures, MAX_DOUBLINGS));
      entry.failures += 1;
      // The first failure at level 2, its retries at level 4.
      this.log.v(entry.failures === 1 ? 2 : 4, 'pod status not written yet', {
        pod: entry.target?.metadata?.name,
        error: messageOf(error),
      });
      this.retry(uid, entry, delay);
    } finally {
      entry.syncing = false;
    }
  }

  private retry(uid: string, entry: Entry, delayMs: number): void {
    entry.timer = this.clock.setTimer(delayMs, () => this.kick(uid));
  }

  private async sync(uid: string, entry: Entry, client: ApiClient): Promise<void> {
    const { target, status } = entry;
    if (target?.metadata?.name === undefined) return;
    if (status !== undefined && (await this.write(entry, target, status, client)) === 'replaced') return;
    // What was set meanwhile is written before the pod is removed.
    if (entry.dirty || !entry.finished || target.metadata.deletionTimestamp === undefined) return;
    const waitMs = entry.deletingMs === undefined ? 0 : entry.deletingMs + TERMINATING_MS - this.clock.monotonicMs();
    if (waitMs > 0) this.retry(uid, entry, waitMs);
    else await remove(target, client);
  }

  /** A status that the API refuses holds up neither the pod's phase nor its deletion. */
  private async write(
    entry: Entry,
    target: Pod,
    status: PodStatus,
    client: ApiClient,
  ): Promise<'written' | 'refused' | 'replaced'> {
    const current = (target.status ?? {}) as PodStatus;
    const patch = statusPatch(current, status);
    const key = canonicalJson(status);
    if (patch === undefined || entry.refusal?.status !== key) entry.refusal = undefined;
    if (patch === undefined) return 'written';
    if (entry.refusal !== undefined && this.clock.monotonicMs() < entry.refusal.untilMs) return 'refused';
    try {
      return await this.patch(entry, target, patch, client);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const { name, namespace } = target.metadata ?? {};
      if (entry.refusal === undefined)
        this.log.warn('pod status refused', { pod: `${namespace}/${name}`, error: messageOf(error) });
      entry.refusal = { status: key, untilMs: this.clock.monotonicMs() + REFUSED_RETRY_MS };
      const rest = essentialPatch(current, status, error);
      if (rest === undefined) return 'refused';
      try {
        return (await this.patch(entry, target, rest, client)) === 'replaced' ? 'replaced' : 'refused';
      } catch (second) {
        if (!isRefusal(second)) throw second;
        return 'refused';
      }
    }
  }

  private async patch(entry: Entry, target: Pod, patch: object, client: ApiClient): Promise<'written' | 'replaced'> {
    const { name = '', namespace, uid } = target.metadata ?? {};
    try {
      const answer = await client
        .resource(resources.pods)
        .patch(name, namespace, 'strategic', { metadata: { uid }, status: patch }, { subresource: 'status' });
      // What the API made of it is the base of the next difference, unless something newer has been seen meanwhile.
      if (entry.target === target) entry.target = answer;
      if (canonicalJson(answer.status) !== canonicalJson(target.status)) {
        this.log.v(4, 'pod status written', { pod: `${namespace}/${name}`, phase: answer.status?.phase });
      }
      return 'written';
    } catch (error) {
      // The pod is deleted or replaced by another of its name: the informer reports it.
      if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return 'replaced';
      throw error;
    }
  }
}

/** Nothing of the pod has run, failed or been refused. */
function isStarting({ phase, reason, containerStatuses = [], initContainerStatuses = [], conditions = [] }: PodStatus) {
  return (
    phase === 'Pending' &&
    reason === undefined &&
    conditions.every(({ type }) => !RESIZE_CONDITIONS.includes(type)) &&
    [...initContainerStatuses, ...containerStatuses].every(
      ({ state, lastState }) => CREATING.has(state?.waiting?.reason ?? '') && lastState?.terminated === undefined,
    )
  );
}

/** Answers that the same request gets again until something else changes. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 405, 413, 415, 422]);

const isRefusal = (error: unknown): error is ApiError => error instanceof ApiError && REFUSALS.has(error.httpCode);

async function remove(pod: Pod, client: ApiClient): Promise<void> {
  const { name = '', namespace, uid } = pod.metadata ?? {};
  try {
    await client.resource(resources.pods).delete(name, namespace, {
      gracePeriodSeconds: 0,
      ...(uid === undefined ? {} : { preconditions: { uid } }),
    });
  } catch (error) {
    if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
  }
}
