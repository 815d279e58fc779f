/**
 * Blocks of memory that large writes are put together in. Fresh memory for each would be touched for the first time by
 * every write, and the garbage collector would hear of so many bytes from outside its heap that it collects all the
 * time; so blocks go round.
 */
export const BLOCK_BYTES = 256 << 10;
/** Blocks that are kept for later; what is needed beyond that at one time is given back. */
const KEPT = 8;

const free: Buffer[] = [];

export function takeBlock(): Buffer {
  return free.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
}

/** Recycles `block`, which must not be read any more. */
export function giveBlock(block: Buffer): void {
  if (free.length < KEPT) free.push(block);
}
