import { Reader, type Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { Violation } from './checkers.ts';
import type { Member } from './member.ts';
import { type Answer, call } from './rpc.ts';
import type { World } from './world.ts';

const ATTEMPT_MS = 1500;
/** Alarms are raised for IDs that belong to no member, because the alarms of a removed member are deleted with it. */
const FIRST_ALARM = 0xa1a0000n;
const ACTIVATE = 1;
const DEACTIVATE = 2;
const NO_SPACE = 1;
const USERS = 4;

/** Raises and disarms the NOSPACE alarm, and creates and deletes users, one request at a time at any member. */
export class Administrators {
  readonly #world: World;
  readonly #members: () => readonly Member[];
  /** Whether each user exists. A user whose request has an unknown outcome is not used again. */
  readonly #users = new Map<string, boolean>();
  #alarms = 0;
  #names = 0;
  #raises = false;
  #stopped = false;

  constructor(world: World, members: () => readonly Member[]) {
    this.#world = world;
    this.#members = members;
  }

  /** @param alarms No other client raises or disarms alarms. */
  start({ alarms }: { readonly alarms: boolean }): void {
    this.#raises = alarms;
    if (alarms) this.#nextAlarm();
    this.#nextUser();
  }

  /** Forgets all users, because the store was restored from a snapshot. */
  forgetUsers(): void {
    this.#users.clear();
  }

  /** Stops the client and disarms alarms that requests in flight may still raise. */
  stop(): void {
    this.#stopped = true;
    if (this.#raises) this.#disarmAll();
  }

  #disarmAll(): void {
    const { timeline, random, checkers } = this.#world;
    checkers.alarmSince = undefined;
    this.#ask('Maintenance/Alarm', alarm(DEACTIVATE, 0n, 0), () =>
      timeline.after(random.between(200, 500), () => this.#disarmAll()),
    );
  }

  #nextAlarm(): void {
    const { timeline, random, checkers } = this.#world;
    timeline.after(random.between(500, 3000), () => {
      if (this.#stopped) return;
      this.#alarms += 1;
      // Each request has its own ID, so that a late earlier request does not affect it.
      const id = FIRST_ALARM + BigInt(this.#alarms);
      this.#ask('Maintenance/Alarm', alarm(ACTIVATE, id), (answer) => {
        if (answer.kind === 'ok' && !this.#stopped) checkers.alarmSince = timeline.nowMs;
        timeline.after(random.between(50, 600), () => this.#disarm(id));
      });
    });
  }

  /** Retries until the alarm is disarmed, because no write succeeds before. */
  #disarm(id: bigint): void {
    const { timeline, random, checkers } = this.#world;
    checkers.alarmSince = undefined;
    this.#ask('Maintenance/Alarm', alarm(DEACTIVATE, id), (answer) => {
      if (answer.kind !== 'ok') {
        timeline.after(random.between(20, 200), () => this.#disarm(id));
        return;
      }
      this.#nextAlarm();
    });
  }

  #nextUser(): void {
    const { timeline, random } = this.#world;
    timeline.after(random.between(50, 400), () => {
      if (this.#stopped) return;
      while (this.#users.size < USERS) {
        this.#names += 1;
        this.#users.set(`u${this.#names}`, false);
      }
      const name = random.pick([...this.#users.keys()]) ?? '';
      const what = random.pick(['add', 'delete', 'list'] as const) ?? 'list';
      const done = (check: (answer: Answer) => void) => (answer: Answer) => {
        check(answer);
        this.#nextUser();
      };
      if (what === 'list')
        this.#ask(
          'Auth/UserList',
          (out) => out,
          done((answer) => this.#listed(answer)),
        );
      else {
        const path = what === 'add' ? 'Auth/UserAdd' : 'Auth/UserDelete';
        const write = (out: Writer): Writer => {
          out.string(1, name);
          return what === 'add' ? out.message(3, Buffer.of(8, 1)) : out;
        };
        this.#ask(
          path,
          write,
          done((answer) => this.#changed(name, what === 'add', answer)),
        );
      }
    });
  }

  #changed(name: string, added: boolean, answer: Answer): void {
    const was = this.#users.get(name);
    const text = answer.kind === 'failed' ? answer.text : '';
    if (answer.kind === 'ok') {
      if (was === added) throw new Violation('users', `${name} was ${added ? 'added' : 'removed'} twice`);
      this.#users.set(name, added);
    } else if (/user name already exists|user name not found/.test(text)) {
      if (was !== added)
        throw new Violation('users', `${name}: ${text}, but it was ${was ? 'added' : 'removed'} before`);
    } else if (answer.kind === 'unknown' || !answer.sure) this.#users.delete(name);
  }

  #listed(answer: Answer): void {
    if (answer.kind !== 'ok') return;
    const there = new Set<string>();
    const reader = new Reader(answer.body);
    for (let field = reader.field(); field !== 0; field = reader.field()) {
      if (field === 2) there.add(reader.string());
      else reader.skip();
    }
    for (const [name, is] of this.#users)
      if (there.has(name) !== is) throw new Violation('users', `${name} is ${is ? 'not ' : ''}among the users`);
  }

  #ask(path: string, write: (out: Writer) => Writer, done: (answer: Answer) => void): void {
    const { random, timeline, trace } = this.#world;
    const member = random.pick(this.#members());
    if (member === undefined) {
      done({ kind: 'unknown' });
      return;
    }
    call(this.#world, member, `/etcdserverpb.${path}`, write, { timeoutMs: ATTEMPT_MS }, (answer) => {
      const text = answer.kind === 'failed' ? answer.text : answer.kind;
      trace.add(`${timeline.nowMs.toFixed(3)} ${member.name} ${path}: ${text}`);
      trace.count(`${path}: ${answer.kind === 'ok' ? 'ok' : 'not'}`);
      done(answer);
    });
  }
}

const alarm =
  (action: number, id: bigint, which = NO_SPACE) =>
  (out: Writer): Writer =>
    out.int(1, action).big(2, id).int(3, which);
