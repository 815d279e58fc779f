/**
 * Time axis of the usage history. It advances with the monotonic clock, so a step of the wall clock neither stretches
 * nor overlaps samples. Each run of the process is a segment with its own offset to the wall clock. The offset of the
 * current segment follows the wall clock: on a host without a battery-backed clock, samples from before the time
 * synchronization get correct times when the clock is set.
 */
import { LEVELS, LONG_LEVEL } from './levels.ts';

export interface Segment {
  /** First time of the segment on the timeline. */
  readonly fromMs: number;
  /** Wall-clock time minus time on the timeline. */
  readonly offsetMs: number;
}

/** The timeline when it was saved. */
export interface SavedTimeline {
  readonly timeMs: number;
  readonly wallMs: number;
  readonly segments: readonly Segment[];
}

const MAX_SEGMENTS = 32;

export class Timeline {
  /** Beginning of this run. */
  readonly startMs: number;
  private readonly monotonicStartMs: number;
  private readonly earlier: readonly Segment[];
  private offsetMs: number;
  private latestMs: number;

  constructor(monotonicMs: number, wallMs: number, saved?: SavedTimeline) {
    this.monotonicStartMs = monotonicMs;
    this.startMs = saved === undefined ? Math.max(0, wallMs) : resumeAt(saved, wallMs);
    this.earlier = saved === undefined ? [] : reduced(saved.segments);
    this.latestMs = this.startMs;
    this.offsetMs = wallMs - this.startMs;
  }

  /** Returns the time on the timeline. It never decreases. */
  advance(monotonicMs: number, wallMs: number): number {
    this.latestMs = Math.max(this.latestMs, this.startMs + (monotonicMs - this.monotonicStartMs));
    this.offsetMs = wallMs - this.latestMs;
    return this.latestMs;
  }

  get nowMs(): number {
    return this.latestMs;
  }

  get wallMs(): number {
    return this.latestMs + this.offsetMs;
  }

  /** Segments in ascending order of time. The last segment is that of this run. */
  segments(): Segment[] {
    return [...this.earlier, { fromMs: this.startMs, offsetMs: this.offsetMs }];
  }

  saved(): SavedTimeline {
    return { timeMs: this.latestMs, wallMs: this.wallMs, segments: this.segments() };
  }
}

/**
 * Start of a new run on the timeline. If the wall clock was set back, or the pause is longer than the retention, the
 * run begins in the slot after the last one.
 */
function resumeAt({ timeMs, wallMs }: SavedTimeline, nowMs: number): number {
  const { stepMs, retentionMs } = LEVELS[LONG_LEVEL];
  const offMs = nowMs - wallMs;
  return timeMs + (offMs >= 0 && offMs <= retentionMs ? offMs : stepMs);
}

/** Limits the number of segments, which grows with each restart: joins neighbours whose offsets differ least. */
function reduced(segments: readonly Segment[]): readonly Segment[] {
  const kept = [...segments];
  while (kept.length > MAX_SEGMENTS) {
    let best = 1;
    for (let at = 1; at < kept.length; at++) if (jump(kept, at) < jump(kept, best)) best = at;
    kept.splice(best, 1);
  }
  return kept;
}

const jump = (segments: readonly Segment[], at: number): number =>
  Math.abs((segments[at]?.offsetMs ?? 0) - (segments[at - 1]?.offsetMs ?? 0));
