import { availableParallelism, loadavg } from 'node:os';

/** Factor for time limits on a machine with other load; 1 on an idle machine. */
export function slack(): number {
  const [lastMinute = 0] = loadavg();
  return Math.max(1, lastMinute / availableParallelism());
}
