import { writePutRequest } from '../../../src/store/core/messages/kv.ts';
import { Reader, type Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { Violation } from './checkers.ts';
import type { Member } from './member.ts';
import { type Answer, call } from './rpc.ts';
import type { World } from './world.ts';

const ATTEMPT_MS = 1500;
const DEACTIVATE = 2;
const NO_SPACE = 1;
/** Size and interval of the writes that fill a store, and their maximum duration. */
const FILL_BYTES = 500;
const FILL_MS = 100;
const PATIENCE_MS = 12_000;
/** Bytes that may still be written between the check of the quota and the alarm. */
const OVERSHOOT_BYTES = 15_000;

/** Exceeds the quota from time to time, then frees space by compaction and disarms the alarm. */
export class Quota {
  readonly #world: World;
  readonly #members: () => readonly Member[];
  readonly #bytes: number;
  #resting = false;
  #values = 0;

  constructor(world: World, members: () => readonly Member[], bytes: number) {
    this.#world = world;
    this.#members = members;
    this.#bytes = bytes;
  }

  start(): void {
    const { timeline, random } = this.#world;
    timeline.after(random.between(200, 900), () => {
      if (this.#resting) return;
      this.#ask('Maintenance/Alarm', alarm(0), (answer) => {
        if (answer.kind !== 'ok' || !hasAlarm(answer.body)) this.start();
        else this.#makeRoom(() => this.start());
      });
    });
  }

  /** Checks without faults that writes are rejected in time, and succeed again once space has been freed. */
  async check(until: (time: number) => Promise<void>): Promise<void> {
    const { timeline, trace } = this.#world;
    this.#resting = true;
    await until(timeline.nowMs + ATTEMPT_MS);
    await this.#fill(
      until,
      (answer) => answer.kind === 'failed' && /space exceeded/.test(answer.text),
      () => {
        throw new Violation('quota', 'no member reported that the quota is used up');
      },
    );
    trace.count('quota used up');
    for (const { name, disk } of this.#members())
      if (disk.image.bytes > this.#bytes + OVERSHOOT_BYTES)
        throw new Violation('quota', `${name} uses ${disk.image.bytes} bytes, and its quota is ${this.#bytes} bytes`);
    this.#resting = false;
    this.start();
    await this.#fill(
      until,
      ({ kind }) => kind === 'ok',
      () => {
        throw new Violation('liveness', 'no write succeeded after space was released');
      },
    );
  }

  async #fill(
    until: (time: number) => Promise<void>,
    isIt: (answer: Answer) => boolean,
    inVain: () => never,
  ): Promise<void> {
    const { timeline } = this.#world;
    const deadline = timeline.nowMs + PATIENCE_MS;
    for (let found = false; !found; ) {
      if (timeline.nowMs > deadline) inVain();
      this.#values += 1;
      const value = Buffer.alloc(FILL_BYTES, `fill${this.#values} `);
      const done = (answer: Answer): void => {
        found ||= isIt(answer);
      };
      this.#ask('KV/Put', (out) => writePutRequest(out, { key: 'fill', value }), done);
      await until(timeline.nowMs + FILL_MS);
    }
  }

  #makeRoom(done: () => void): void {
    const { checkers } = this.#world;
    const revision = Math.max(1, checkers.known);
    this.#ask(
      'KV/Compact',
      (out) => out.int(1, revision),
      () => this.#ask('Maintenance/Alarm', alarm(DEACTIVATE), done),
    );
  }

  #ask(path: string, write: (out: Writer) => Writer, done: (answer: Answer) => void): void {
    const { random, timeline, trace } = this.#world;
    const all = this.#members().filter(({ gone }) => !gone);
    const running = all.filter(({ service }) => service !== undefined);
    const member = random.pick(running.length > 0 ? running : all);
    if (member === undefined) return;
    call(this.#world, member, `/etcdserverpb.${path}`, write, { timeoutMs: ATTEMPT_MS }, (answer) => {
      const text = answer.kind === 'failed' ? answer.text : answer.kind;
      trace.add(`${timeline.nowMs.toFixed(3)} ${member.name} room: ${path}: ${text}`);
      done(answer);
    });
  }
}

const alarm =
  (action: number) =>
  (out: Writer): Writer =>
    out.int(1, action).big(2, 0n).int(3, NO_SPACE);

function hasAlarm(body: Buffer): boolean {
  const reader = new Reader(body);
  let has = false;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    has ||= field === 2;
    reader.skip();
  }
  return has;
}
