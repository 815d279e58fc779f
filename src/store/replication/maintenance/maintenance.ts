/** Periodic work of the leader: automatic compaction, and the NOSPACE alarm at the quota. */

import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { StoreLog } from '../../disk/port.ts';
import type { AutoCompaction } from '../../server/server-port.ts';
import type { Engine } from '../engine.ts';
import type { Command } from '../peers/entry-codec.ts';
import { ALARM_NO_SPACE } from './alarms.ts';

export interface MaintenanceDeps {
  readonly engine: Engine;
  readonly storage: StoreLog;
  readonly clock: Clock;
  readonly log: Log;
  readonly compaction: AutoCompaction | undefined;
  readonly quotaBytes: number | undefined;
  readonly command: (command: Command) => Promise<void>;
}

/** etcd's intervals. Source: etcd server/etcdserver/api/v3compactor. */
const REVISION_MODE_MS = 5 * 60_000;
const HOUR_MS = 3600_000;
const SAMPLES = 10;
const QUOTA_CHECK_MS = 1000;
/** Short retry delay, because a loaded cluster may reject the alarm. */
const QUOTA_RETRY_MS = 70;

export class Maintenance {
  readonly #deps: MaintenanceDeps;
  #compactionTimer: Timer | undefined;
  #quotaTimer: Timer | undefined;
  #samples: Array<{ readonly atMs: number; readonly revision: number }> = [];
  #stopped = false;

  constructor(deps: MaintenanceDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#armCompaction();
  }

  stop(): void {
    this.#stopped = true;
    this.#compactionTimer?.cancel();
    this.#quotaTimer?.cancel();
  }

  #armCompaction(): void {
    const { compaction, clock } = this.#deps;
    if (compaction === undefined || this.#stopped) return;
    const every =
      compaction.mode === 'revision'
        ? REVISION_MODE_MS
        : Math.max(1, Math.min(compaction.retentionMs, HOUR_MS) / SAMPLES);
    this.#compactionTimer = clock.setTimer(every, () => {
      void this.#compact(compaction).finally(() => this.#armCompaction());
    });
  }

  async #compact(compaction: AutoCompaction): Promise<void> {
    const { engine, clock, log } = this.#deps;
    const { machine } = engine;
    let revision: number | undefined;
    if (compaction.mode === 'revision') revision = machine.visible - compaction.revisions;
    else {
      const now = clock.monotonicMs();
      this.#samples.push({ atMs: now, revision: machine.visible });
      while ((this.#samples[0]?.atMs ?? now) <= now - compaction.retentionMs)
        revision = this.#samples.shift()?.revision;
    }
    if (!engine.leads || revision === undefined || revision <= Math.max(0, machine.compacted)) return;
    try {
      await engine.compact(revision, { physical: false });
      log.v(2, 'auto compaction finished', { revision });
    } catch (error) {
      log.warn('auto compaction failed; retrying', { revision, cause: messageOf(error) });
    }
  }

  /** Schedules the check of the quota. Call it after a write. */
  wrote(): void {
    if (this.#quotaTimer === undefined) this.#armQuota(QUOTA_CHECK_MS);
  }

  #armQuota(delayMs: number): void {
    const { quotaBytes, clock, log } = this.#deps;
    if (quotaBytes === undefined || this.#stopped) return;
    this.#quotaTimer = clock.setTimer(delayMs, () => {
      this.#quotaTimer = undefined;
      this.#checkQuota().catch((error: unknown) => {
        if (this.#stopped) return;
        log.warn('quota check failed; retrying', { cause: messageOf(error) });
        if (this.#quotaTimer === undefined) this.#armQuota(QUOTA_RETRY_MS);
      });
    });
  }

  async #checkQuota(): Promise<void> {
    const { engine, storage, quotaBytes = 0, log, command } = this.#deps;
    const { inUseBytes } = await storage.size();
    const member = engine.replica.id;
    const raised = engine.cluster.alarms.some((each) => each.member === member && each.alarm === ALARM_NO_SPACE);
    if (inUseBytes <= quotaBytes || raised) return;
    log.error('database quota exceeded; rejecting writes; compact, then disarm the alarm', {
      bytes: inUseBytes,
      quota: quotaBytes,
    });
    await command({ type: 'alarm', raised: true, member, alarm: ALARM_NO_SPACE });
  }
}
