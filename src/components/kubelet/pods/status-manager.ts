import type { Pod } from 'kubernetes-types/core/v1';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { Clock, Timer } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { ApiClient } from '../../../client/types.ts';
import { canonicalJson } from '../../../core/podplan/hash.ts';
import type { PodStatus } from '../../../core/podplan/status.ts';
import { statusPatch } from './status-patch.ts';

interface Entry {
  /** The pod object at the API that carries this status: the pod itself or its mirror; undefined while there is none. */
  target: Pod | undefined;
  status: PodStatus | undefined;
  /** The pod is over and holds nothing: its object can go. */
  finished: boolean;
  syncing: boolean;
  dirty: boolean;
  failures: number;
  timer: Timer | undefined;
}

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 1_000;

/** Brings statuses to the API: one pod at a time in order, the latest wins, and only differences. Source: pkg/kubelet/status. */
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
    this.entry(uid).status = status;
    this.kick(uid);
  }

  /** The object at the API was seen, changed or is gone. */
  setTarget(uid: string, target: Pod | undefined): void {
    this.entry(uid).target = target;
    this.kick(uid);
  }

  finish(uid: string): void {
    this.entry(uid).finished = true;
    this.kick(uid);
  }

  forget(uid: string): void {
    this.entries.get(uid)?.timer?.cancel();
    this.entries.delete(uid);
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
      };
      this.entries.set(uid, entry);
    }
    return entry;
  }

  private kick(uid: string): void {
    const entry = this.entries.get(uid);
    if (entry === undefined || this.client === undefined) return;
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
        await this.sync(entry, client);
      }
      entry.failures = 0;
    } catch (error) {
      const delay = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** entry.failures);
      entry.failures += 1;
      // Said once; the tries that follow are for those who look closely.
      this.log.v(entry.failures === 1 ? 2 : 4, 'pod status not written yet', {
        pod: entry.target?.metadata?.name,
        error: messageOf(error),
      });
      entry.timer = this.clock.setTimer(delay, () => this.kick(uid));
    } finally {
      entry.syncing = false;
    }
  }

  private async sync(entry: Entry, client: ApiClient): Promise<void> {
    const { target, status } = entry;
    const metadata = target?.metadata;
    if (target === undefined || metadata?.name === undefined) return;
    const pods = client.resource(resources.pods);
    if (status !== undefined) {
      const patch = statusPatch((target.status ?? {}) as PodStatus, status);
      if (patch !== undefined) {
        try {
          const answer = await pods.patch(
            metadata.name,
            metadata.namespace,
            'strategic',
            { metadata: { uid: metadata.uid }, status: patch },
            { subresource: 'status' },
          );
          // What the API made of it is the base of the next difference, unless something newer has been seen meanwhile.
          if (entry.target === target) entry.target = answer;
          if (canonicalJson(answer.status) !== canonicalJson(target.status)) {
            this.log.v(4, 'pod status written', { pod: `${metadata.namespace}/${metadata.name}`, phase: status.phase });
          }
        } catch (error) {
          if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
          // Gone, or replaced by another of the same name: the informer says so in a moment.
          return;
        }
      }
    }
    if (entry.finished && metadata.deletionTimestamp !== undefined) {
      try {
        await pods.delete(metadata.name, metadata.namespace, {
          gracePeriodSeconds: 0,
          ...(metadata.uid === undefined ? {} : { preconditions: { uid: metadata.uid } }),
        });
      } catch (error) {
        if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
      }
    }
  }
}
