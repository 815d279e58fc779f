/** Streamed bodies: the content, the pace of the reader, and buffers that are reused only after they were sent. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import { it } from 'node:test';
import { writeParts } from '../../../src/apiserver/http/stream-body.ts';
import { Choices } from '../core/patch/choices.ts';

/** A stream that reads its input only on request, as TLS may do, and records the memory of its buffers. */
class Late extends Writable {
  readonly memory = new Set<ArrayBufferLike>();
  readonly read: Buffer[] = [];
  most = 0;
  #waiting: { readonly chunk: Buffer; readonly done: () => void }[] = [];

  constructor() {
    super({ highWaterMark: 1 << 30 });
  }

  override write(chunk: Buffer, done?: unknown): boolean {
    this.memory.add(chunk.buffer);
    this.#waiting.push({ chunk, done: typeof done === 'function' ? () => done(undefined) : () => {} });
    this.most = Math.max(this.most, this.#waiting.length);
    return true;
  }

  /** Reads the oldest write. Returns false if there is none. */
  flush(): boolean {
    const next = this.#waiting.shift();
    if (next === undefined) return false;
    this.read.push(Buffer.from(next.chunk));
    next.done();
    return true;
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function sent(parts: readonly Buffer[], flushes: () => number): Promise<Late> {
  const target = new Late();
  let ended = false;
  const writing = writeParts(target, parts).then(() => {
    ended = true;
  });
  while (!ended) {
    for (let count = flushes(); count > 0; count--) target.flush();
    await turn();
  }
  await writing;
  while (target.flush());
  return target;
}

it('a streamed body has the written bytes even if the buffers are read late', async () => {
  for (let seed = 0; seed < 40; seed++) {
    const choices = new Choices(seed);
    const parts = Array.from({ length: choices.below(600) }, (_, n) =>
      Buffer.alloc(choices.chance(0.01) ? 60_000 + choices.below(100_000) : choices.below(3_000), `${n},`),
    );
    const target = await sent(parts, () => choices.below(3));
    assert.ok(Buffer.concat(target.read).equals(Buffer.concat(parts)), `seed ${seed}`);
  }
});

it('uses two buffers for a list of any length, even if it is read slowly', async () => {
  const part = Buffer.alloc(1000, 'x');
  const target = await sent(Array<Buffer>(20_000).fill(part), () => 1);
  assert.equal(
    target.read.reduce((sum, each) => sum + each.length, 0),
    20_000_000,
  );
  // The last piece has its own memory.
  assert.ok(target.most <= 3);
  assert.ok(target.memory.size <= 3, `${target.memory.size} buffers`);
});

it('a streamed body waits for a slow reader, and ends when the reader closes', async () => {
  for (const goes of ['close', 'failure']) {
    const dones: ((error?: Error) => void)[] = [];
    // This target is like an HTTP/2 response, which has no `destroyed`.
    const target = Object.assign(new EventEmitter(), {
      write: (_chunk: Buffer, done: (error?: Error) => void) => dones.push(done) === 0,
    });
    let used = 0;
    const endless = (function* () {
      for (;;) {
        used += 1;
        yield Buffer.alloc(30_000);
      }
    })();
    const writing = writeParts(target as unknown as Writable, endless);
    for (let turns = 0; turns < 20; turns++) await turn();
    assert.equal(dones.length, 2);
    assert.ok(used < 10);
    if (goes === 'close') target.emit('close');
    else dones[0]?.(new Error('reset'));
    await writing;
    assert.equal(target.listenerCount('close'), 0);
  }
});
