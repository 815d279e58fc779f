/**
 * Selects operator versions that satisfy all subscriptions of a namespace together. The resolver uses a depth-first
 * search with backtracking. The search is deterministic, and finds a solution if one exists and the step limit is not
 * reached. It prefers the options of the first subscription, then those of the second one, and so on. Source: the
 * constraints of operator-lifecycle-manager's resolver, which uses a SAT solver.
 */
import type { Constraint, GvkKey } from './catalog/blobs.ts';
import { parseRange, type Range, type Version } from './catalog/semver.ts';

/** Operator version that may be part of a solution. */
export interface CandidateVersion {
  /** Name of the CSV, which is unique in a solution. */
  readonly name: string;
  /** Name of the package; empty for an installed version whose package is unknown. */
  readonly package: string;
  readonly version: Version | undefined;
  readonly provides: readonly GvkKey[];
  readonly requires: readonly Constraint[];
  /** Key of the catalog that contains the version; empty for an installed version. */
  readonly catalog: string;
  readonly channel: string;
  readonly installed: boolean;
  /** Whether the version's properties satisfy a CEL rule. Absent if CEL rules are not supported. */
  satisfies?(rule: string): boolean;
}

export interface Wanted {
  /** Name of the subscription. */
  readonly name: string;
  /** Versions that satisfy the subscription, best first. The installed version, if any, comes last. */
  readonly options: readonly CandidateVersion[];
  /** Message for the case that there are no options. */
  readonly reason: string;
}

export interface Problem {
  readonly wanted: readonly Wanted[];
  /** Installed versions without a subscription. */
  readonly fixed: readonly CandidateVersion[];
  /** Versions that may be added to satisfy a dependency, best first. `from` is the catalog of the dependent version. */
  candidates(constraint: Leaf, from: string): Iterable<CandidateVersion>;
  /** Error in a CEL rule, if any. */
  mistakeIn?(rule: string): string | undefined;
  readonly maxSteps?: number;
}

export type Leaf = Extract<Constraint, { readonly type: 'package' | 'gvk' | 'cel' }>;

export type Resolution =
  | { readonly chosen: readonly CandidateVersion[] }
  | { readonly failure: string; readonly reason: 'ConstraintsNotSatisfiable' | 'ErrorPreventedResolution' };

/** Limit of steps. A search of this length takes some tens of milliseconds. */
const MAX_STEPS = 20_000;

export function resolve(problem: Problem): Resolution {
  const search = new Search(problem);
  const chosen = search.run();
  if (chosen !== undefined) return { chosen };
  if (search.gaveUp)
    return {
      failure: `resolution was aborted after ${problem.maxSteps ?? MAX_STEPS} steps; name channels or remove subscriptions`,
      reason: 'ErrorPreventedResolution',
    };
  return { failure: `constraints not satisfiable: ${search.explanation}`, reason: 'ConstraintsNotSatisfiable' };
}

class Search {
  readonly #problem: Problem;
  /**
   * Requirements of installed versions that are satisfied before the search, and must stay satisfied. Other
   * requirements of installed versions are already violated, so they are ignored.
   */
  readonly #kept: ReadonlyMap<CandidateVersion, readonly Constraint[]>;
  readonly #members: CandidateVersion[] = [];
  #steps = 0;
  gaveUp = false;
  #why: string[] = [];

  constructor(problem: Problem) {
    this.#problem = problem;
    const present = [
      ...problem.fixed,
      ...problem.wanted.flatMap(({ options }) => options.filter((each) => each.installed)),
    ];
    this.#kept = new Map(
      present.map((each) => [each, each.requires.filter((constraint) => isConstraintMet(constraint, present))]),
    );
  }

  get explanation(): string {
    return [...new Set(this.#why)].slice(0, 5).join(', ');
  }

  run(): readonly CandidateVersion[] | undefined {
    for (const each of this.#problem.fixed) this.#members.push(each);
    return this.#choose(0) ? [...this.#members] : undefined;
  }

  #choose(index: number): boolean {
    const wanted = this.#problem.wanted[index];
    if (wanted === undefined) return this.#settle();
    if (wanted.options.length === 0) this.#note(wanted.reason);
    for (const option of wanted.options)
      if (this.#with(option, `subscription ${wanted.name}`, () => this.#choose(index + 1))) return true;
    return false;
  }

  /** Adds members until all requirements are satisfied. Returns false if that is impossible. */
  #settle(): boolean {
    for (const member of this.#members) {
      for (const constraint of this.#kept.get(member) ?? member.requires) {
        if (constraint.type === 'none' || isConstraintMet(constraint, this.#members)) continue;
        return this.#satisfy(constraint, member, () => this.#settle());
      }
    }
    return this.#members.every((member) =>
      (this.#kept.get(member) ?? member.requires).every(
        (each) => each.type !== 'none' || this.#noneHolds(each, member),
      ),
    );
  }

  #noneHolds(constraint: Constraint, member: CandidateVersion): boolean {
    if (isConstraintMet(constraint, this.#members)) return true;
    this.#note(`bundle ${member.name} excludes another chosen version`);
    return false;
  }

  #satisfy(constraint: Constraint, member: CandidateVersion, next: () => boolean): boolean {
    if (isConstraintMet(constraint, this.#members)) return next();
    switch (constraint.type) {
      case 'all': {
        const [first, ...rest] = constraint.of;
        if (first === undefined) return next();
        if (first.type === 'none') return this.#satisfy({ ...constraint, of: rest }, member, next);
        return this.#satisfy(first, member, () => this.#satisfy({ ...constraint, of: rest }, member, next));
      }
      case 'any':
        return constraint.of.some((each) => this.#satisfy(each, member, next));
      case 'none':
        return next();
      default: {
        let found = false;
        for (const candidate of this.#problem.candidates(constraint, member.catalog)) {
          if (!matchesConstraint(constraint, candidate)) continue;
          found = true;
          if (this.#with(candidate, `bundle ${member.name} requires it and`, next)) return true;
          if (this.gaveUp) return false;
        }
        if (!found) this.#note(`bundle ${member.name} requires an operator ${this.#describe(constraint)}`);
        return false;
      }
    }
  }

  /** Adds the member and calls `next`. Returns true if `next` succeeds; otherwise removes the member again. */
  #with(member: CandidateVersion, why: string, next: () => boolean): boolean {
    this.#steps += 1;
    if (this.#steps > (this.#problem.maxSteps ?? MAX_STEPS)) {
      this.gaveUp = true;
      return false;
    }
    const rival = this.#members.find((each) => excludes(each, member));
    if (rival !== undefined) {
      this.#note(`${why} ${member.name} conflicts with ${rival.name}`);
      return false;
    }
    this.#members.push(member);
    if (next()) return true;
    this.#members.pop();
    return false;
  }

  #describe(constraint: Leaf): string {
    const mistake = constraint.type === 'cel' ? this.#problem.mistakeIn?.(constraint.rule) : undefined;
    return mistake === undefined ? describe(constraint) : `${describe(constraint)}, which is invalid: ${mistake}`;
  }

  #note(why: string): void {
    if (this.#why.length < 50) this.#why.push(why);
  }
}

/** Whether two members cannot be in the same solution: they have the same name or package, or provide the same API. */
export function excludes(a: CandidateVersion, b: CandidateVersion): boolean {
  return (
    a.name === b.name ||
    (a.package !== '' && a.package === b.package) ||
    a.provides.some((each) => b.provides.includes(each))
  );
}

export function matchesConstraint(constraint: Leaf, member: CandidateVersion): boolean {
  if (constraint.type === 'gvk') return member.provides.includes(constraint.gvk);
  if (constraint.type === 'cel') return member.satisfies?.(constraint.rule) === true;
  return (
    member.package === constraint.name &&
    member.version !== undefined &&
    rangeOf(constraint)?.includes(member.version) === true
  );
}

/** Parsed range of each constraint. A constraint is compared with many versions. */
const ranges = new WeakMap<Leaf, Range>();

function rangeOf(constraint: Extract<Leaf, { readonly type: 'package' }>): Range | undefined {
  const known = ranges.get(constraint);
  if (known !== undefined) return known;
  const range = parseRange(constraint.range);
  if (range !== undefined) ranges.set(constraint, range);
  return range;
}

export function isConstraintMet(constraint: Constraint, members: readonly CandidateVersion[]): boolean {
  switch (constraint.type) {
    case 'all':
      return constraint.of.every((each) => isConstraintMet(each, members));
    case 'any':
      return constraint.of.some((each) => isConstraintMet(each, members));
    case 'none':
      return !constraint.of.some((each) => isConstraintMet(each, members));
    default:
      return members.some((each) => matchesConstraint(constraint, each));
  }
}

function describe(constraint: Leaf): string {
  if (constraint.type === 'package')
    return `with package: ${constraint.name} and with version in range: ${constraint.range}`;
  if (constraint.type === 'cel')
    return `whose properties satisfy ${constraint.message === '' ? `the rule ${constraint.rule}` : JSON.stringify(constraint.message)}`;
  const [group, version, kind] = constraint.gvk.split('/');
  return `providing an API with group: ${group}, version: ${version}, kind: ${kind}`;
}
