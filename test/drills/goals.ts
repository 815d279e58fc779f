import { percentile } from './journal.ts';

/** Goals in milliseconds for a store of three members on an idle machine, for 99 of 100 samples. */
export const GOALS = { kill: 1000, handover: 200 } as const;

export interface Judgement {
  readonly line: string;
  readonly missed: boolean;
}

/** Evaluates samples in milliseconds. Without a goal, there is no verdict; without samples, the result is undefined. */
export function judged(what: string, samples: readonly number[], goalMs: number | undefined): Judgement | undefined {
  if (samples.length === 0) return undefined;
  const [p50, p99] = [percentile(samples, 0.5), percentile(samples, 0.99)];
  const missed = goalMs !== undefined && p99 > goalMs;
  const goal = goalMs === undefined ? '' : `, goal ${goalMs} ms: ${missed ? 'MISSED' : 'met'}`;
  const max = Math.round(Math.max(...samples));
  return { line: `${what}: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms (${samples.length})${goal}`, missed };
}
