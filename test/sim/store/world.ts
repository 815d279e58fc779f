import type { Random } from '../raft/random.ts';
import type { Timeline } from '../raft/timeline.ts';
import type { Trace } from '../raft/trace.ts';
import type { Bug } from './bugs.ts';
import type { Checkers } from './checkers.ts';
import type { Network } from './network.ts';

/** Shared environment of one run. */
export interface World {
  readonly random: Random;
  readonly timeline: Timeline;
  readonly trace: Trace;
  readonly network: Network;
  readonly checkers: Checkers;
  readonly bug: Bug | undefined;
}
