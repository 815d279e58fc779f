/**
 * Computes the seats of each priority level from their demands, when levels lend unused seats. The allocation is
 * proportional to targets, within bounds. Source: KEP-1040, "Dispatching".
 */

export interface AllocationClass {
  /** Requested number of seats; at least `lower`. */
  readonly target: number;
  readonly lower: number;
  readonly upper: number;
}

export interface Allocation {
  readonly shares: readonly number[];
  /** Fraction of its target that each class gets, unless a bound applies. */
  readonly proportion: number;
}

/** Minimum target, so that levels without demand share the remaining seats. */
const MIN_TARGET = 0.001;
const EPSILON = 1e-7;
const ROUNDS = 200;

/**
 * Divides `sum` among the classes: each gets the same fraction of its target, limited by its bounds. Undefined if the
 * lower bounds exceed the sum, or the upper bounds do not reach it.
 */
export function allocate(sum: number, classes: readonly AllocationClass[]): Allocation | undefined {
  const targets = classes.map(({ target }) => Math.max(target, MIN_TARGET));
  const at = (proportion: number): number[] =>
    classes.map(({ lower, upper }, index) =>
      Math.max(lower, Math.min(upper, proportion * (targets[index] ?? MIN_TARGET))),
    );
  const total = (shares: readonly number[]): number => shares.reduce((all, each) => all + each, 0);
  if (classes.some(({ lower, upper }) => lower < 0 || upper < lower)) return undefined;
  if (total(classes.map(({ lower }) => lower)) > sum + EPSILON) return undefined;
  if (total(classes.map(({ upper }) => upper)) < sum - EPSILON) return undefined;
  // The sum of the shares is piecewise linear in the proportion. The search finds the segment first, then the point on
  // it.
  const bounds = classes
    .flatMap(({ lower, upper }, index) => [lower, upper].map((bound) => bound / (targets[index] ?? MIN_TARGET)))
    .sort((a, b) => a - b);
  let low = 0;
  let high = bounds.at(-1) ?? 0;
  for (let round = 0; round < ROUNDS; round++) {
    const inside = bounds.filter((each) => each > low && each < high);
    const middle = inside[inside.length >> 1];
    if (middle === undefined) break;
    if (total(at(middle)) < sum) low = middle;
    else high = middle;
  }
  const [below, above] = [total(at(low)), total(at(high))];
  const proportion = above - below < EPSILON ? high : low + ((high - low) * (sum - below)) / (above - below);
  return { shares: at(proportion), proportion };
}
