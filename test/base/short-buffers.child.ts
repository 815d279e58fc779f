/**
 * Writes fresh strings to short buffers while V8 finishes collections that return pages to the system. Without
 * protection, Node 24.21 ends with SIGSEGV within some rounds. Exit code 1: a buffer has other bytes than the string.
 */
import '../../src/base/short-buffers.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';

const ROUNDS = 30;
const OFFSET = 13;

function bufferWith(text: string): Buffer {
  const buffer = Buffer.alloc(54);
  buffer.write(text, OFFSET);
  return buffer;
}

// V8 passes addresses of strings only in optimized code.
for (let n = 0; n < 300_000; n++) bufferWith(`abcdefgh${n % 10}`);
for (let round = 0; round < ROUNDS; round++) {
  const garbage: object[] = [];
  for (let n = 0; n < 100_000; n++) garbage.push({ n, text: `s${n}` });
  garbage.length = 0;
  const texts: string[] = [];
  for (let n = 0; n < 2000; n++) texts.push(Buffer.from(`abcdefg${n}`).toString('latin1'));
  setFlagsFromString('--optimize-for-size');
  new ArrayBuffer(80 << 20);
  setFlagsFromString('--no-optimize-for-size');
  for (const text of texts) {
    if (bufferWith(text).toString('latin1', OFFSET, OFFSET + text.length) !== text) process.exit(1);
  }
  await sleep(1);
}
