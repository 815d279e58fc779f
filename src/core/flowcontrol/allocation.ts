/**
 * How many seats each priority level has at a given demand, when levels lend what they do not use.
 * Source: KEP-1040, "Dispatching": the allocation is proportional to targets, within bounds.
 */

export interface AllocationClass {
  /** What it would have; at least `lower`. */
  readonly target: number;
  readonly lower: number;
  readonly upper: number;
}

export interface Allocation {
  readonly shares: readonly number[];
  /** What everybody gets of their target, where no bound says otherwise. */
  readonly proportion: number;
}

/** So that levels without any demand still share what is left over. */
const MIN_TARGET = 0.001;
const EPSILON = 1e-7;
const ROUNDS = 200;

/**
 * Shares of `sum`, one for each class: the same proportion of everybody's target, cut to the class's bounds.
 * Undefined where the bounds leave no way: lower ones that add up to more, or upper ones that add up to less.
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
  // What is given out grows with the proportion, in straight lines between the bounds: first the line, then the place
  // on it.
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
