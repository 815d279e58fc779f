/** Durations of the services during a start. */
import type { StartStage } from '../../base/services.ts';

/** Minimum duration of a service that is listed. */
const SHOWN_MS = 20;

/** The total duration and the slow services, such as `started 41 services in 1.20 s: runtime 0.40 s, files 0.20 s`. */
export function slowStages(stages: readonly StartStage[]): string {
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
  const total = stages.reduce((sum, { ms }) => sum + ms, 0);
  const slow = stages.filter(({ ms }) => ms >= SHOWN_MS).map(({ name, ms }) => `${name} ${seconds(ms)}`);
  const started = `started ${stages.length} service${stages.length === 1 ? '' : 's'} in ${seconds(total)}`;
  return slow.length === 0 ? started : `${started}: ${slow.join(', ')}`;
}
