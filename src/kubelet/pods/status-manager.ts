import type { Pod, PodStatus } from '../../api/generated/core/v1.ts';
import { ApiError, isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import type { Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import { canonicalJson } from '../../base/json/canonical-json.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { ApiClient } from '../../client/types.ts';
import { RESIZE_CONDITIONS } from '../core/pod-plan/status.ts';
import { essentialPatch, statusPatch } from './status-patch.ts';

interface Entry {
  /** API object that carries this status: the pod itself or its mirror pod. Undefined while there is none. */
  target: Pod | undefined;
  status: PodStatus | undefined;
  /** Whether the pod has terminated and released its resources, so its object can be deleted. */
  finished: boolean;
  syncing: boolean;
  dirty: boolean;
  failures: number;
  timer: Timer | undefined;
  /** Timer that delays the statuses of a starting pod, so that they are combined with the next change. */
  start: Timer | undefined;
  /**
   * Text of the status that the API rejected. The same status is not sent again before the monotonic time `untilMs`.
   */
  refusal: { readonly status: string; readonly untilMs: number } | undefined;
  /** Monotonic time at which the graceful deletion was first observed. */
  deletingMs: number | undefined;
}

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 1_000;
/**
 * Delay for conditions of a pod whose containers are being created. Most pods run before it expires, which saves a
 * write: writes cost the API server and each watcher more than the kubelet.
 */
const START_MS = 500;
const CREATING: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing']);
const WRITTEN_POLL_MS = 20;
/** A validation rule or admission policy that rejects a status may change, but not soon. */
const REFUSED_RETRY_MS = 60_000;
const MAX_DOUBLINGS = 16;
/**
 * Minimum time for which a terminating pod stays visible. A client that deletes gracefully and then reads expects to
 * find the pod, as upstream's conformance suite does. Upstream's kubelet takes about a second.
 */
const TERMINATING_MS = 250;

/**
 * Writes pod statuses to the API: in order per pod, only the latest status, and only differences. Source:
 * pkg/kubelet/status.
 */
export class StatusManager {
  private client: ApiClient | undefined;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly entries = new Map<Uid, Entry>();

  constructor(options: { readonly clock: Clock; readonly log: Log }) {
    this.clock = options.clock;
    this.log = options.log;
  }

  connect(client: ApiClient): void {
    this.client = client;
    for (const uid of this.entries.keys()) this.kick(uid);
  }

  /** `uid` is the kubelet's UID: a static pod's own, not that of its mirror pod. */
  set(uid: Uid, status: PodStatus): void {
    const entry = this.entry(uid);
    entry.status = status;
    const { metadata, status: known } = entry.target ?? {};
    // After a power failure, the API may still show the pod as running. Such a status is not delayed.
    const isFirst = known?.phase === undefined || known.phase === 'Pending';
    if (!isFirst || !isStarting(status) || metadata?.deletionTimestamp !== undefined) this.kick(uid);
    else entry.start ??= this.clock.setTimer(START_MS, () => this.kick(uid));
  }

  /** Handles an observed, changed or deleted object at the API. */
  setTarget(uid: Uid, target: Pod | undefined): void {
    const entry = this.entry(uid);
    entry.target = target;
    if ((target?.metadata?.deletionGracePeriodSeconds ?? 0) > 0) entry.deletingMs ??= this.clock.monotonicMs();
    this.kick(uid);
  }

  finish(uid: Uid): void {
    this.entry(uid).finished = true;
    this.kick(uid);
  }

  forget(uid: Uid): void {
    const entry = this.entries.get(uid);
    entry?.timer?.cancel();
    entry?.start?.cancel();
    this.entries.delete(uid);
  }

  /** Resolves when the statuses of these pods have been written to the API. */
  async written(uids: readonly Uid[]): Promise<void> {
    const entries = (): Entry[] => uids.flatMap((uid) => this.entries.get(uid) ?? []);
    while (
      this.client !== undefined &&
      entries().some(({ syncing, dirty, timer, start }) => syncing || dirty || timer || start)
    )
      await new Promise<void>((resolve) => this.clock.setTimer(WRITTEN_POLL_MS, resolve));
  }

  /**
   * Stops all writes to the API, including pending ones: pods that a stopping host stops must not be reported as
   * terminated.
   */
  stop(): void {
    this.client = undefined;
    for (const uid of [...this.entries.keys()]) this.forget(uid);
  }

  private entry(uid: Uid): Entry {
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

  private kick(uid: Uid): void {
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

  private async run(uid: Uid, entry: Entry, client: ApiClient): Promise<void> {
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
      // The first failure is logged at level 2, retries at level 4.
      this.log.v(entry.failures === 1 ? 2 : 4, 'pod status not written yet', {
        pod: entry.target?.metadata?.name,
        error: messageOf(error),
      });
      this.retry(uid, entry, delay);
    } finally {
      entry.syncing = false;
    }
  }

  private retry(uid: Uid, entry: Entry, delayMs: number): void {
    entry.timer = this.clock.setTimer(delayMs, () => this.kick(uid));
  }

  private async sync(uid: Uid, entry: Entry, client: ApiClient): Promise<void> {
    const { target, status } = entry;
    if (target?.metadata?.name === undefined) return;
    if (status !== undefined && (await this.write(entry, target, status, client)) === 'replaced') return;
    // Statuses set in the meantime are written before the pod is deleted.
    if (entry.dirty || !entry.finished || target.metadata.deletionTimestamp === undefined) return;
    const waitMs = entry.deletingMs === undefined ? 0 : entry.deletingMs + TERMINATING_MS - this.clock.monotonicMs();
    if (waitMs > 0) this.retry(uid, entry, waitMs);
    else await remove(target, client);
  }

  /** Writes the status. A status that the API rejects blocks neither the phase nor the deletion of the pod. */
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
      // The API's response is the base of the next patch, unless a newer object was observed in the meantime.
      if (entry.target === target) entry.target = answer;
      if (canonicalJson(answer.status) !== canonicalJson(target.status)) {
        this.log.v(4, 'pod status written', { pod: `${namespace}/${name}`, phase: answer.status?.phase });
      }
      return 'written';
    } catch (error) {
      // The pod was deleted or replaced by another of the same name. The informer reports it.
      if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return 'replaced';
      throw error;
    }
  }
}

/** Whether no part of the pod has run, failed or been rejected. */
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

/** Status codes that the same request receives again until the object or the policy changes. */
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
