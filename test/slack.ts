import { availableParallelism, loadavg } from 'node:os';

/** By what a bound on time has to be stretched on a machine that others use at the same time; 1 where nobody does. */
export function slack(): number {
  const [lastMinute = 0] = loadavg();
  return Math.max(1, lastMinute / availableParallelism());
}
