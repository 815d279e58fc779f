import type { RandomSource } from '../../base/time/clock.ts';

const BYTES = 4;
const BATCH = 256;

/**
 * Returns cryptographically secure uniform numbers, because templates generate passwords. The bytes are read in batches
 * to save system calls.
 */
export function secretUniform(random: RandomSource): () => number {
  let drawn: Uint8Array = new Uint8Array(0);
  let at = 0;
  return () => {
    if (at + BYTES > drawn.length) {
      drawn = random.bytes(BYTES * BATCH);
      at = 0;
    }
    let number = 0;
    for (const end = at + BYTES; at < end; at++) number = number * 256 + (drawn[at] ?? 0);
    return number / 256 ** BYTES;
  };
}
