import { PermissionType, writePermission } from '../../../src/store/core/messages/auth.ts';
import { writePutRequest, writeRangeRequest } from '../../../src/store/core/messages/kv.ts';
import { Reader, type Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { type Shown, Violation } from './checkers.ts';
import type { Member } from './member.ts';
import { type Answer, call } from './rpc.ts';
import type { World } from './world.ts';

const ATTEMPT_MS = 1500;
const LIMITED = 'limited';
/** Number of revoked keys that are still tried. */
const REMEMBERED = 3;

interface Key {
  readonly name: string;
  /** Time after which the user must have no access; undefined while it may have access. */
  refusedSince: number | undefined;
}

const named = (name: string, second?: string) => (out: Writer) => {
  out.string(1, name);
  return second === undefined ? out : out.string(2, second);
};
const user = (name: string) => (out: Writer) => out.string(1, name).message(3, Buffer.of(8, 1));

/** Requests that set up auth. Repeating them has no effect. */
const SETUP: ReadonlyArray<readonly [path: string, write: (out: Writer) => Writer]> = [
  ['UserAdd', user('root')],
  ['UserGrantRole', named('root', 'root')],
  ['RoleAdd', named(LIMITED)],
  ['UserAdd', user(LIMITED)],
  ['UserGrantRole', named(LIMITED, LIMITED)],
  ['AuthEnable', (out) => out],
];

/**
 * Enables auth, and grants and revokes a user's access to one key after another. Meanwhile the user writes and reads at
 * any member, authenticated by a certificate or by a token that contains the auth revision at which it was issued.
 */
export class Permissions {
  readonly #world: World;
  readonly #members: () => readonly Member[];
  readonly #keys: Key[] = [];
  /** Values of writes that were sent after access had been revoked. */
  readonly #forbidden = new Set<string>();
  #names = 0;
  #values = 0;
  #stopped = false;
  /** Whether auth is enabled, as far as every client knows. */
  #enabled = false;
  #revision = 0;
  /** Number of restores of the store from a snapshot. */
  #epoch = 0;
  #revisions = true;

  constructor(world: World, members: () => readonly Member[]) {
    this.#world = world;
    this.#members = members;
  }

  /** @param revisions Tokens contain the auth revision at which they were issued. */
  start({ revisions }: { readonly revisions: boolean }): void {
    this.#revisions = revisions;
    this.#setUp(0);
    this.#use();
    this.#look();
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Resets the known permissions after a restore. */
  forget(): void {
    this.#epoch += 1;
    this.#enabled = false;
    this.#revision = 0;
    this.#keys.length = 0;
    this.#forbidden.clear();
    this.#setUp(0);
  }

  /** Handles a revision that has become visible. */
  shown(events: readonly Shown[]): void {
    for (const { key, value, deleted } of events)
      if (!deleted && this.#forbidden.has(value))
        throw new Violation('permissions', `${value} was written to ${key} after the permission had been revoked`);
  }

  #later(least: number, most: number, run: () => void): void {
    const { timeline, random } = this.#world;
    timeline.after(random.between(least, most), () => {
      if (!this.#stopped) run();
    });
  }

  #setUp(step: number): void {
    const next = SETUP[step];
    if (next === undefined) {
      this.#enabled = true;
      this.#grant();
      return;
    }
    const [path, write] = next;
    this.#ask(path, write, (answer) => {
      const done = answer.kind === 'ok' || (answer.kind === 'failed' && /already exists/.test(answer.text));
      this.#later(5, 60, () => this.#setUp(done ? step + 1 : step));
    });
  }

  /** Uses each key once, because a grant with an unknown outcome may still take effect. */
  #grant(): void {
    this.#names += 1;
    const name = `p/${this.#names}`;
    const permission = { type: PermissionType.readwrite, key: name, end: '' };
    this.#ask(
      'RoleGrantPermission',
      (out) => writePermission(out.string(1, LIMITED), 2, permission),
      (answer) => {
        if (answer.kind !== 'ok') {
          this.#later(20, 200, () => this.#grant());
          return;
        }
        const key: Key = { name, refusedSince: undefined };
        this.#keys.push(key);
        if (this.#keys.length > REMEMBERED) this.#keys.shift();
        this.#later(100, 800, () => this.#revoke(key));
      },
    );
  }

  #revoke(key: Key): void {
    this.#ask(
      'RoleRevokePermission',
      (out) => out.string(1, LIMITED).latin1(2, key.name),
      (answer) => {
        const done = answer.kind === 'ok' || (answer.kind === 'failed' && /not granted/.test(answer.text));
        if (done) key.refusedSince = this.#world.timeline.nowMs;
        this.#later(20, 300, () => (done ? this.#grant() : this.#revoke(key)));
      },
    );
  }

  #use(): void {
    this.#later(10, 60, () => {
      const { random } = this.#world;
      const key = this.#enabled ? random.pick(this.#keys) : undefined;
      const member = random.pick(this.#members());
      if (key === undefined || member === undefined) this.#use();
      else this.#try(key, member, random.chance(0.5), () => this.#use());
    });
  }

  #try(key: Key, member: Member, writes: boolean, done: () => void): void {
    const { timeline, random, trace } = this.#world;
    const { name, refusedSince } = key;
    const epoch = this.#epoch;
    const allowed = refusedSince === undefined;
    this.#values += 1;
    const value = `permitted${this.#values}`;
    if (writes && !allowed) this.#forbidden.add(value);
    // The token is sometimes slightly outdated.
    const made =
      this.#revisions && random.chance(0.5)
        ? Math.max(1, this.#revision - (random.pick([0, 0, 1, 2]) ?? 0))
        : undefined;
    const isOld = made !== undefined && made < this.#revision;
    if (writes && isOld) this.#forbidden.add(value);
    const write = (out: Writer): Writer =>
      writes ? writePutRequest(out, { key: name, value: Buffer.from(value) }) : writeRangeRequest(out, { key: name });
    call(
      this.#world,
      member,
      writes ? '/etcdserverpb.KV/Put' : '/etcdserverpb.KV/Range',
      write,
      { timeoutMs: ATTEMPT_MS, user: LIMITED, ...(made === undefined ? {} : { token: `${LIMITED}@${made}` }) },
      (answer) => {
        const text = answer.kind === 'failed' ? answer.text : answer.kind;
        trace.add(`${timeline.nowMs.toFixed(3)} ${member.name} ${writes ? value : 'permitted read'} ${name}: ${text}`);
        if (answer.kind === 'ok' && epoch === this.#epoch) {
          if (!allowed)
            throw new Violation(
              'permissions',
              `${value}: ${name} was ${writes ? 'written' : 'read'} by a user whose permission had been revoked`,
            );
          if (isOld)
            throw new Violation(
              'permissions',
              `${value}: a token of auth revision ${made} was accepted after the revision had changed`,
            );
          trace.count('permitted');
        } else if (answer.kind === 'failed' && /permission denied|revision of auth/.test(answer.text))
          trace.count('not permitted');
        done();
      },
    );
  }

  /** Checks that the auth revision never decreases at any member. */
  #look(): void {
    this.#later(50, 400, () => {
      const known = this.#revision;
      const epoch = this.#epoch;
      this.#ask(
        'AuthStatus',
        (out) => out,
        (answer) => {
          this.#look();
          if (answer.kind !== 'ok' || epoch !== this.#epoch) return;
          const revision = revisionOf(answer.body);
          if (revision < known)
            throw new Violation('permissions', `auth revision ${revision} was reported after ${known}`);
          this.#revision = Math.max(this.#revision, revision);
        },
      );
    });
  }

  #ask(path: string, write: (out: Writer) => Writer, done: (answer: Answer) => void): void {
    const { random, timeline, trace } = this.#world;
    const epoch = this.#epoch;
    const member = random.pick(this.#members());
    if (member === undefined || this.#stopped) return;
    call(this.#world, member, `/etcdserverpb.Auth/${path}`, write, { timeoutMs: ATTEMPT_MS }, (answer) => {
      const text = answer.kind === 'failed' ? answer.text : answer.kind;
      trace.add(`${timeline.nowMs.toFixed(3)} ${member.name} ${path}: ${text}`);
      trace.count(`Auth/${path}: ${answer.kind === 'ok' ? 'ok' : 'not'}`);
      // Steps from before a restore are repeated.
      if (epoch === this.#epoch || path === 'AuthStatus') done(answer);
    });
  }
}

function revisionOf(body: Buffer): number {
  const reader = new Reader(body);
  let revision = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 3) revision = reader.int();
    else reader.skip();
  }
  return revision;
}
