/** Seconds and CPU seconds of test files, from earlier runs of `npm test`. */
import { readFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** `cpuSeconds` is missing if it was not measured. */
export interface Cost {
  readonly seconds: number;
  readonly cpuSeconds?: number;
}

/** Cores assumed for an unmeasured short file, which mostly loads its sources. */
const UNMEASURED_CORES = 0.8;
/** Cores assumed for an unmeasured long file, which mostly waits. */
const UNMEASURED_LONG_CORES = 0.5;
const LONG_SECONDS = 20;
/** Minimum for each file, because a file with a small average also has bursts. */
const LEAST_CORES = 0.15;

export function coresOf({ seconds, cpuSeconds }: Cost): number {
  if (cpuSeconds !== undefined && seconds > 0) return Math.max(LEAST_CORES, cpuSeconds / seconds);
  return seconds > LONG_SECONDS ? UNMEASURED_LONG_CORES : UNMEASURED_CORES;
}

/** A file's costs in `costs.json`: seconds, CPU seconds. */
type Recorded = readonly [number, number?];

export class Costs {
  readonly #path: string;
  readonly #recorded: Record<string, Recorded>;

  private constructor(path: string, recorded: Record<string, Recorded>) {
    this.#path = path;
    this.#recorded = recorded;
  }

  /** Costs of this checkout's last run; `costs.json` has those of files that did not run here. */
  static async load(root: string): Promise<Costs> {
    const path = join(root, 'dist/cache/test-costs.json');
    const shipped = JSON.parse(readFileSync(join(import.meta.dirname, 'costs.json'), 'utf8'));
    const own = await readFile(path, 'utf8').then(JSON.parse, () => ({}));
    return new Costs(path, { ...shipped, ...own });
  }

  /** Cost of the test file at the path `name` of the repository. */
  of(name: string): Cost {
    const [seconds = 0, cpuSeconds] = this.#recorded[name] ?? [];
    return cpuSeconds === undefined ? { seconds } : { seconds, cpuSeconds };
  }

  async save(costs: Readonly<Record<string, Cost>>): Promise<void> {
    const round = (value: number): number => Math.round(value * 10) / 10;
    const measured = Object.entries(costs).map(([name, { seconds, cpuSeconds }]): [string, Recorded] => [
      name,
      cpuSeconds === undefined ? [round(seconds)] : [round(seconds), round(cpuSeconds)],
    ]);
    const all = Object.entries({ ...this.#recorded, ...Object.fromEntries(measured) });
    await mkdir(dirname(this.#path), { recursive: true });
    await writeFile(
      this.#path,
      JSON.stringify(Object.fromEntries(all.sort(([left], [right]) => (left < right ? -1 : 1))), undefined, 1),
    );
  }
}
