import { percentile } from './journal.ts';

/** What is asked of a store of three members on one machine that has nothing else to do: 99 of 100 take no longer. */
export const GOALS = { kill: 1000, handover: 200 } as const;

export interface Judgement {
  readonly line: string;
  readonly missed: boolean;
}

/** Of times in milliseconds. `goalMs` undefined: nothing is asked. No times at all are no judgement. */
export function judged(what: string, samples: readonly number[], goalMs: number | undefined): Judgement | undefined {
  if (samples.length === 0) return undefined;
  const [p50, p99] = [percentile(samples, 0.5), percentile(samples, 0.99)];
  const missed = goalMs !== undefined && p99 > goalMs;
  const goal = goalMs === undefined ? '' : `, goal ${goalMs} ms: ${missed ? 'MISSED' : 'met'}`;
  const max = Math.round(Math.max(...samples));
  return { line: `${what}: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms (${samples.length})${goal}`, missed };
}
