/**
 * Regular expressions that match in linear time. Patterns come from users (schemas, CEL), and JavaScript's own matcher
 * can take exponential time.
 */
import { type Instruction, programOf } from './program.ts';
import { type Assertion, parseRegexp } from './syntax.ts';

/** Thrown if a large pattern is matched against such a long text that the event loop would be blocked. */
export class MatchLimitError extends Error {
  constructor() {
    super('the text is too long to be matched against this pattern');
    this.name = 'MatchLimitError';
  }
}

export interface Match {
  /** UTF-16 offsets of the match. */
  readonly start: number;
  readonly end: number;
  /** Texts of the capturing groups, starting with group 1; undefined for a group that did not match. */
  readonly groups: readonly (string | undefined)[];
}

export interface Regexp {
  readonly groups: number;
  readonly names: ReadonlyMap<string, number>;
  /** Whether the pattern matches anywhere in the text. All methods may throw MatchLimitError. */
  test(text: string): boolean;
  /** Leftmost match at or after `from`. Among matches at the same position, Perl's preferences decide. */
  exec(text: string, from?: number): Match | undefined;
  /** Non-overlapping matches from left to right, at most `limit`. */
  all(text: string, limit?: number): Match[];
}

/** Compiles a pattern in RE2 syntax. Throws RegexpError. */
export function compileRegexp(pattern: string): Regexp {
  const { root, groups, names } = parseRegexp(pattern);
  return new Machine(programOf(root, pattern), groups, names);
}

/**
 * Number of instructions that may be executed for one text, which takes about a quarter of a second. Cached DFA steps
 * do not count.
 */
const MAX_WORK = 2_000_000;
/** Maximum number of cached transitions of a state for characters outside ASCII. */
const MAX_OTHERS = 1_024;
/** Maximum number of cached DFA states per pattern. When it is exceeded, the cache is cleared. */
const MAX_STATES = 512;
const ASCII = 128;

/** A DFA state: a set of NFA instructions with cached transitions. */
interface State {
  readonly chars: readonly number[];
  readonly matches: boolean;
  /** Whether the text matches if it ends in this state. */
  readonly atEnd: boolean;
  readonly next: (State | undefined)[];
  readonly others: Map<number, State>;
}

class Machine implements Regexp {
  readonly groups: number;
  readonly names: ReadonlyMap<string, number>;
  readonly #program: readonly Instruction[];
  /** Whether the DFA supports the pattern. It does not support word boundaries and line assertions. */
  readonly #simple: boolean;
  #states = new Map<string, State>();
  #begin: State | undefined;
  #inside: State | undefined;
  #work = 0;

  constructor(program: readonly Instruction[], groups: number, names: ReadonlyMap<string, number>) {
    this.#program = program;
    this.groups = groups;
    this.names = names;
    this.#simple = program.every((each) => each.op !== 'assert' || each.what === 'begin' || each.what === 'end');
  }

  test(text: string): boolean {
    if (!this.#simple) return this.exec(text) !== undefined;
    this.#begin ??= this.#state([0], { begin: true });
    let state = this.#begin;
    this.#work = 0;
    if (state.matches) return true;
    for (let at = 0; at < text.length; at++) {
      let code = text.charCodeAt(at);
      if (code >= 0xd800 && code <= 0xdbff) {
        code = text.codePointAt(at) ?? code;
        if (code > 0xffff) at += 1;
      }
      state = (code < ASCII ? state.next[code] : state.others.get(code)) ?? this.#step(state, code);
      if (state.matches) return true;
    }
    return state.atEnd;
  }

  #step(state: State, code: number): State {
    const program = this.#program;
    this.#work += state.chars.length + 1;
    if (this.#work > MAX_WORK) throw new MatchLimitError();
    const reached: number[] = [];
    for (const pc of state.chars) {
      const instruction = program[pc];
      if (instruction?.op === 'char' && instruction.set.has(code)) reached.push(pc + 1);
    }
    // A match may start at any position, so instruction 0 is added.
    this.#inside ??= this.#state([0], { begin: false });
    const next = reached.length === 0 ? this.#inside : this.#state([...reached, 0], { begin: false });
    if (code < ASCII) state.next[code] = next;
    else if (state.others.size < MAX_OTHERS) state.others.set(code, next);
    return next;
  }

  #state(starts: readonly number[], { begin }: { readonly begin: boolean }): State {
    const chars = new Set<number>();
    let matches = false;
    let atEnd = false;
    const follow = (from: readonly number[], { end }: { readonly end: boolean }): void => {
      const seen = new Set<number>();
      const pending = [...from];
      for (let pc = pending.pop(); pc !== undefined; pc = pending.pop()) {
        if (seen.has(pc)) continue;
        seen.add(pc);
        this.#work += 1;
        const instruction = this.#program[pc];
        switch (instruction?.op) {
          case 'char':
            if (!end) chars.add(pc);
            break;
          case 'match':
            if (end) atEnd = true;
            else matches = true;
            break;
          case 'jump':
            pending.push(instruction.to);
            break;
          case 'split':
            pending.push(instruction.first, instruction.second);
            break;
          case 'save':
            pending.push(pc + 1);
            break;
          case 'assert':
            if (instruction.what === 'begin' ? begin : end) pending.push(pc + 1);
            break;
          case undefined:
            break;
        }
      }
    };
    follow(starts, { end: false });
    follow(starts, { end: true });
    const sorted = [...chars].sort((a, b) => a - b);
    const key = `${matches}${atEnd}${sorted.join(',')}`;
    let state = this.#states.get(key);
    if (state === undefined) {
      if (this.#states.size >= MAX_STATES) this.#forget();
      state = { chars: sorted, matches, atEnd, next: [], others: new Map() };
      this.#states.set(key, state);
    }
    return state;
  }

  #forget(): void {
    // States in use remain valid. Only their cached transitions are dropped, so that the memory is bounded.
    for (const state of this.#states.values()) {
      state.next.length = 0;
      state.others.clear();
    }
    this.#states = new Map();
    this.#begin = undefined;
    this.#inside = undefined;
  }

  exec(text: string, from = 0): Match | undefined {
    return new Search(this.#program, text, this.groups).run(from);
  }

  all(text: string, limit = Number.POSITIVE_INFINITY): Match[] {
    const found: Match[] = [];
    let at = 0;
    let last = -1;
    // All searches share one limit, because each search may read to the end of the text.
    const search = new Search(this.#program, text, this.groups);
    while (at <= text.length && found.length < limit) {
      const match = search.run(at);
      if (match === undefined) break;
      const empty = match.end === match.start;
      // As in Go, an empty match directly after another match is ignored.
      if (!empty || match.start !== last) found.push(match);
      last = match.end;
      at = empty ? match.end + ((text.codePointAt(match.end) ?? 0) > 0xffff ? 2 : 1) : match.end;
    }
    return found;
  }
}

interface Thread {
  readonly pc: number;
  readonly slots: readonly number[];
}

/** One pass over the text with all threads in order of priority (Pike's VM). */
class Search {
  readonly #program: readonly Instruction[];
  readonly #text: string;
  readonly #slots: number;
  readonly #seen: Uint32Array;
  #mark = 0;
  #work = 0;

  constructor(program: readonly Instruction[], text: string, groups: number) {
    this.#program = program;
    this.#text = text;
    this.#slots = (groups + 1) * 2;
    this.#seen = new Uint32Array(program.length);
  }

  run(from: number): Match | undefined {
    let threads: Thread[] = [];
    let found: readonly number[] | undefined;
    for (let at = from; ; ) {
      if (found === undefined) {
        // A match that starts later has a lower priority than existing threads.
        const slots = new Array<number>(this.#slots).fill(-1);
        slots[0] = at;
        threads = this.#closure([...threads, { pc: 0, slots }], at);
      } else threads = this.#closure(threads, at);
      const code = this.#text.codePointAt(at);
      const next: Thread[] = [];
      for (const thread of threads) {
        const instruction = this.#program[thread.pc];
        if (instruction?.op === 'match') {
          const slots = [...thread.slots];
          slots[1] = at;
          found = slots;
          break;
        }
        if (code !== undefined && instruction?.op === 'char' && instruction.set.has(code)) {
          next.push({ pc: thread.pc + 1, slots: thread.slots });
        }
      }
      threads = next;
      if (code === undefined || (found !== undefined && threads.length === 0)) break;
      at += code > 0xffff ? 2 : 1;
    }
    return found === undefined ? undefined : this.#match(found);
  }

  #match(slots: readonly number[]): Match {
    const groups: (string | undefined)[] = [];
    for (let index = 2; index < slots.length; index += 2) {
      const start = slots[index] ?? -1;
      const end = slots[index + 1] ?? -1;
      groups.push(start < 0 || end < 0 ? undefined : this.#text.slice(start, end));
    }
    return { start: slots[0] ?? 0, end: slots[1] ?? 0, groups };
  }

  /**
   * Follows all instructions that consume no character. Returns the threads that are then at character or end
   * instructions, in order of priority.
   */
  #closure(threads: readonly Thread[], at: number): Thread[] {
    this.#mark += 1;
    const result: Thread[] = [];
    const stack: Thread[] = [];
    for (let index = threads.length - 1; index >= 0; index--) stack.push(threads[index] as Thread);
    for (let thread = stack.pop(); thread !== undefined; thread = stack.pop()) {
      const { pc } = thread;
      if (this.#seen[pc] === this.#mark) continue;
      this.#seen[pc] = this.#mark;
      this.#work += 1;
      if (this.#work > MAX_WORK) throw new MatchLimitError();
      const instruction = this.#program[pc];
      switch (instruction?.op) {
        case 'jump':
          stack.push({ pc: instruction.to, slots: thread.slots });
          break;
        case 'split':
          stack.push({ pc: instruction.second, slots: thread.slots }, { pc: instruction.first, slots: thread.slots });
          break;
        case 'save': {
          const slots = [...thread.slots];
          slots[instruction.slot] = at;
          stack.push({ pc: pc + 1, slots });
          break;
        }
        case 'assert':
          if (this.#holds(instruction.what, at)) stack.push({ pc: pc + 1, slots: thread.slots });
          break;
        default:
          result.push(thread);
      }
    }
    return result;
  }

  #holds(what: Assertion, at: number): boolean {
    const text = this.#text;
    switch (what) {
      case 'begin':
        return at === 0;
      case 'end':
        return at === text.length;
      case 'line-begin':
        return at === 0 || text[at - 1] === '\n';
      case 'line-end':
        return at === text.length || text[at] === '\n';
      default:
        return (isWord(text.charCodeAt(at - 1)) !== isWord(text.charCodeAt(at))) === (what === 'word');
    }
  }
}

function isWord(code: number): boolean {
  return (
    (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a) || code === 0x5f || (code >= 0x61 && code <= 0x7a)
  );
}
