/** Closed-loop clients, and evaluation of several rounds. */

export interface Figures {
  readonly perSecond: number;
  readonly medianMs: number;
  readonly p99Ms: number;
}

/** Runs `clients` callers for `seconds`. Each sends its next request after the response to the previous one. */
export async function load(clients: number, seconds: number, ask: (n: number) => Promise<unknown>): Promise<Figures> {
  const times: number[] = [];
  const began = performance.now();
  const end = began + seconds * 1000;
  let n = 0;
  const client = async (): Promise<void> => {
    while (performance.now() < end) {
      n += 1;
      const before = performance.now();
      await ask(n);
      times.push(performance.now() - before);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const elapsed = (performance.now() - began) / 1000;
  return { perSecond: times.length / elapsed, ...spread(times) };
}

/** Sorts `times` in place. */
export function spread(times: number[]): { readonly medianMs: number; readonly p99Ms: number } {
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.floor(times.length * share)] ?? 0;
  return { medianMs: at(0.5), p99Ms: at(0.99) };
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/**
 * One line of the report: the median of both stores and of the per-round ratios, which are affected least by other
 * load.
 */
export function compare(
  what: string,
  unit: string,
  rounds: ReadonlyArray<{ readonly ours: number; readonly etcd: number }>,
  goal: string,
): void {
  const ratio = median(rounds.map(({ ours, etcd }) => ours / etcd));
  const shown = (values: number[]): string => {
    const value = median(values);
    return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
  };
  const columns = [
    what.padEnd(52),
    `ours ${shown(rounds.map(({ ours }) => ours)).padStart(8)}`,
    `etcd ${shown(rounds.map(({ etcd }) => etcd)).padStart(8)} ${unit}`.padEnd(22),
    `${ratio.toFixed(2)} ×`,
    goal === '' ? '' : `(${goal})`,
  ];
  process.stdout.write(`${columns.join('  ').trimEnd()}\n`);
}
