import { constants } from 'node:os';

/** Number of `SIGTERM`, `TERM`, `15` or `SIGRTMIN+3`; SIGTERM for an invalid name. */
export function stopSignal(name: string): number {
  if (/^\d{1,2}$/.test(name) && Number(name) > 0 && Number(name) <= REAL_TIME.MAX) return Number(name);
  const upper = name.toUpperCase().replace(/^SIG/, '');
  const realTime = /^RT(MIN|MAX)(?:([+-])(\d{1,2}))?$/.exec(upper);
  if (realTime !== null) {
    const offset = Number(realTime[3] ?? 0) * (realTime[2] === '-' ? -1 : 1);
    const number = REAL_TIME[realTime[1] as keyof typeof REAL_TIME] + offset;
    if (number >= REAL_TIME.MIN && number <= REAL_TIME.MAX) return number;
  }
  return Object.entries(constants.signals).find(([key]) => key === `SIG${upper}`)?.[1] ?? constants.signals.SIGTERM;
}

/** Range of the C library, which reserves the first two real-time signals. */
const REAL_TIME = { MIN: 34, MAX: 64 } as const;
