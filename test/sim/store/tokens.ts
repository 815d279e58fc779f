import { writeRangeRequest } from '../../../src/store/core/messages/kv.ts';
import { Reader, type Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { Violation } from './checkers.ts';
import type { Member } from './member.ts';
import { type Answer, call } from './rpc.ts';
import type { World } from './world.ts';

const ATTEMPT_MS = 1500;
const NAME = 'tokened';
const PASSWORD = 'pw';
/** Factors for clocks that run slightly fast or slow. */
const SURELY_OVER = 1.03;
const SURELY_NOT_OVER = 0.95;
const REMEMBERED = 3;

/** Identity of a member's state. What the member knew stays valid while none of this changes. */
interface State {
  readonly life: Member['life'];
  /** The image is replaced when the member installs a snapshot. */
  readonly image: unknown;
}

interface Known extends State {
  readonly requestedMs: number;
  readonly answeredMs: number;
}

interface Token {
  readonly text: string;
  readonly requestedMs: number;
  /**
   * The token is replicated to all members. Other tokens are valid only at the member that issued them, some only
   * without a leader.
   */
  readonly isIssued: boolean;
  /** States of all members when the token was requested. */
  readonly before: ReadonlyMap<Member, State>;
  /** Members that accepted the token most recently, without an unknown event since. */
  readonly known: Map<Member, Known>;
}

/**
 * A client that gets simple tokens for its password and uses them at any member, at short or long intervals. A member
 * must accept a token that was recently used there, and reject one that was not.
 */
export class TokenClient {
  readonly #world: World;
  readonly #members: () => readonly Member[];
  readonly #ttlMs: number;
  #tokens: Token[] = [];
  #stopped = false;
  /** Number of restores of the store from a snapshot. */
  #epoch = 0;

  constructor(world: World, members: () => readonly Member[], ttlMs: number) {
    this.#world = world;
    this.#members = members;
    this.#ttlMs = ttlMs;
  }

  start(): void {
    this.#stopped = false;
    this.#add();
  }

  stop(): void {
    this.#stopped = true;
  }

  forget(): void {
    this.#epoch += 1;
    this.#tokens = [];
  }

  #later(least: number, most: number, run: () => void): void {
    const { timeline, random } = this.#world;
    timeline.after(random.between(least, most), () => {
      if (!this.#stopped) run();
    });
  }

  #add(): void {
    const write = (out: Writer): Writer => out.string(1, NAME).string(2, PASSWORD);
    this.#ask('Auth/UserAdd', write, undefined, (answer) => {
      const done = answer.kind === 'ok' || (answer.kind === 'failed' && /already exists/.test(answer.text));
      this.#later(5, 60, () => (done ? this.#next() : this.#add()));
    });
  }

  #next(): void {
    const { random } = this.#world;
    const token = random.pick(this.#tokens);
    const next = (): void => this.#later(10, random.chance(0.15) ? this.#ttlMs * 1.5 : 200, () => this.#next());
    if (token === undefined || random.chance(0.2)) this.#authenticate(next);
    else this.#use(token, next);
  }

  #authenticate(done: () => void): void {
    const { timeline, trace } = this.#world;
    const requestedMs = timeline.nowMs;
    const epoch = this.#epoch;
    const before = new Map(this.#members().map((member) => [member, stateOf(member)]));
    const write = (out: Writer): Writer => out.string(1, NAME).string(2, PASSWORD);
    this.#ask('Auth/Authenticate', write, undefined, (answer) => {
      if (answer.kind === 'ok' && epoch === this.#epoch) {
        trace.count('authenticated');
        const text = tokenOf(answer.body);
        this.#tokens.push({ text, requestedMs, isIssued: text.includes('.'), before, known: new Map() });
        if (this.#tokens.length > REMEMBERED) this.#tokens.shift();
      }
      // The user may be missing after a restore.
      if (answer.kind === 'failed' && /user name not found|authentication failed/.test(answer.text)) this.#add();
      else done();
    });
  }

  #use(token: Token, done: () => void): void {
    const { timeline, trace } = this.#world;
    const requestedMs = timeline.nowMs;
    const epoch = this.#epoch;
    const write = (out: Writer): Writer => writeRangeRequest(out, { key: 'tokened' });
    this.#ask('KV/Range', write, token.text, (answer, member) => {
      const before = token.known.get(member);
      const state = stateOf(member);
      const text = answer.kind === 'failed' ? answer.text : answer.kind;
      token.known.delete(member);
      done();
      if (epoch !== this.#epoch) return;
      if (answer.kind === 'ok' || /permission denied/.test(text)) {
        trace.count('token taken');
        if (token.isIssued && isSame(before, state) && requestedMs - before.answeredMs > this.#ttlMs * SURELY_OVER)
          throw new Violation(
            'tokens',
            `${member.name} accepted a token ${requestedMs - before.answeredMs} ms after its last use`,
          );
        token.known.set(member, { ...state, requestedMs, answeredMs: timeline.nowMs });
      } else if (/invalid auth token/.test(text)) {
        trace.count('token not taken');
        if (!token.isIssued) return;
        for (const [since, sinceMs] of [
          [before, before?.requestedMs ?? 0],
          [token.before.get(member), token.requestedMs],
        ] as const)
          if (isSame(since, state) && timeline.nowMs - sinceMs < this.#ttlMs * SURELY_NOT_OVER)
            throw new Violation(
              'tokens',
              `${member.name} rejected a token that it had accepted ${timeline.nowMs - sinceMs} ms before`,
            );
      }
    });
  }

  #ask(
    path: string,
    write: (out: Writer) => Writer,
    token: string | undefined,
    done: (answer: Answer, member: Member) => void,
  ): void {
    const { random, timeline, trace } = this.#world;
    const member = random.pick(this.#members());
    if (member === undefined || this.#stopped) return;
    const how = { timeoutMs: ATTEMPT_MS, ...(token === undefined ? {} : { token }) };
    call(this.#world, member, `/etcdserverpb.${path}`, write, how, (answer) => {
      const text = answer.kind === 'failed' ? answer.text : answer.kind;
      trace.add(`${timeline.nowMs.toFixed(3)} ${member.name} ${path} of ${NAME}: ${text}`);
      done(answer, member);
    });
  }
}

function stateOf({ life, disk }: Member): State {
  return { life, image: disk.image };
}

function isSame<S extends State>(before: S | undefined, now: State): before is S {
  return before !== undefined && before.life === now.life && before.image === now.image;
}

function tokenOf(body: Buffer): string {
  const reader = new Reader(body);
  let token = '';
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 2) token = reader.string();
    else reader.skip();
  }
  return token;
}
