/** What a leader does now and then: discard old history, and stop growth at the quota. */
import type { Clock, Timer } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { AutoCompaction } from '../index.ts';
import type { StoreLog } from '../port.ts';
import { ALARM_NO_SPACE, type Engine } from './engine.ts';
import type { Command } from './entry-codec.ts';

export interface UpkeepDeps {
  readonly engine: Engine;
  readonly storage: StoreLog;
  readonly clock: Clock;
  readonly log: Log;
  readonly compaction: AutoCompaction | undefined;
  readonly quotaBytes: number | undefined;
  readonly command: (command: Command) => Promise<void>;
}

/** etcd's. Source: etcd server/etcdserver/api/v3compactor. */
const REVISION_MODE_MS = 5 * 60_000;
const HOUR_MS = 3600_000;
const SAMPLES = 10;
const QUOTA_CHECK_MS = 1000;
/** Where more is asked than can be written, the alarm is refused as well: it must not have to wait for luck. */
const QUOTA_RETRY_MS = 70;

export class Upkeep {
  readonly #deps: UpkeepDeps;
  #compactionTimer: Timer | undefined;
  #quotaTimer: Timer | undefined;
  #samples: Array<{ readonly atMs: number; readonly revision: number }> = [];
  #stopped = false;

  constructor(deps: UpkeepDeps) {
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
      await engine.compact(revision, false);
      log.v(2, 'history was discarded', { revision });
    } catch (error) {
      log.warn('history could not be discarded; it is tried again', { revision, cause: messageOf(error) });
    }
  }

  /** Something was written. */
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
        log.warn('the quota could not be checked; it is tried again', { cause: messageOf(error) });
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
    log.error('the quota is used up: writes are refused; compact, then disarm the alarm', {
      bytes: inUseBytes,
      quota: quotaBytes,
    });
    await command({ type: 'alarm', raised: true, member, alarm: ALARM_NO_SPACE });
  }
}
