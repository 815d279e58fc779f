import { Violation } from './checkers.ts';
import { isLinearizable, type RegisterOperation } from './linearizability.ts';
import type { Answer, Member, World } from './member.ts';

const KEYS = ['a', 'b', 'c'];
const ATTEMPT_MS = 150;
const MAX_ATTEMPTS = 6;

type Recorded = { -readonly [P in keyof RegisterOperation]: RegisterOperation[P] } & { readonly key: string };

/** Clients that read, write and compare-and-swap registers through any member, and record the results. */
export class Clients {
  readonly history: Recorded[] = [];
  answered = 0;
  #instant = 0;
  #values = 0;
  #stopped = false;
  #names = 0;
  readonly #world: World;
  readonly #members: () => readonly Member[];

  constructor(world: World, members: () => readonly Member[]) {
    this.#world = world;
    this.#members = members;
  }

  start(count: number): void {
    for (let i = 0; i < count; i++) this.#next(`c${this.#names++}`, 1);
  }

  stop(): void {
    this.#stopped = true;
  }

  #next(client: string, sequence: number): void {
    this.#world.timeline.after(this.#world.random.between(2, 40), () => {
      if (!this.#stopped) this.#operate(client, sequence);
    });
  }

  #operate(client: string, sequence: number): void {
    const { random } = this.#world;
    const key = random.pick(KEYS) ?? 'a';
    const kind = random.chance(0.45) ? 'read' : random.chance(0.6) ? 'write' : 'cas';
    const expected = kind === 'cas' ? Math.max(0, this.#values - random.below(4)) : 0;
    const value = kind === 'read' ? -1 : ++this.#values;
    // Recorded at the call, because an operation without a response may have taken effect.
    const record: Recorded = {
      key,
      kind,
      called: this.#instant++,
      returned: Number.POSITIVE_INFINITY,
      value,
      expected,
      seen: undefined,
    };
    this.history.push(record);
    this.#attempt({ client, sequence, key, kind, expected, value }, 0, (seen) => {
      if (seen !== undefined) {
        record.returned = this.#instant++;
        if (kind !== 'write') record.seen = seen;
        this.answered++;
      }
      // After an unknown outcome, the client continues under a new name.
      if (seen === undefined) this.#next(`c${this.#names++}`, 1);
      else this.#next(client, sequence + 1);
    });
  }

  #attempt(operation: Operation, attempt: number, finish: (seen: number | undefined) => void): void {
    const { timeline, random } = this.#world;
    const member = random.pick(this.#members());
    let over = false;
    const answer = (given: Answer): void => {
      if (over) return;
      over = true;
      if (given.kind === 'done') finish(given.value);
      else if (attempt + 1 >= MAX_ATTEMPTS) finish(undefined);
      else timeline.after(random.between(5, 40), () => this.#attempt(operation, attempt + 1, finish));
    };
    const { kind } = operation;
    if (kind === 'read') member?.read(operation.key, answer);
    else member?.submit({ ...operation, kind }, answer);
    timeline.after(ATTEMPT_MS, () => answer({ kind: 'unknown' }));
  }

  /** Checks each register separately, because linearizability is composable (Herlihy & Wing 1990). */
  check(): void {
    for (const key of KEYS) {
      const operations = this.history.filter((each) => each.key === key);
      if (!isLinearizable(operations))
        throw new Violation(
          'linearizability',
          `no order explains the ${operations.length} operations on register ${key}`,
        );
    }
  }
}

interface Operation {
  readonly client: string;
  readonly sequence: number;
  readonly key: string;
  readonly kind: 'read' | 'write' | 'cas';
  readonly expected: number;
  readonly value: number;
}
