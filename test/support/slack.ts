import { availableParallelism, loadavg } from 'node:os';

/** Factor by which tests extend their time limits because of other load on the machine; 1 on an idle machine. */
export function slack(): number {
  const [lastMinute = 0] = loadavg();
  return Math.max(1, lastMinute / availableParallelism());
}
