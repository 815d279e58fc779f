/**
 * A pool of memory blocks for large writes. Fresh memory for every write would cost page faults, and the external
 * memory would make the garbage collector run constantly.
 */
export const BLOCK_BYTES = 256 << 10;
/** Blocks kept in the pool; further blocks are released to the garbage collector. */
const KEPT = 8;

const free: Buffer[] = [];

export function takeBlock(): Buffer {
  return free.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
}

/** Returns `block` to the pool. It must not be read any more. */
export function releaseBlock(block: Buffer): void {
  if (free.length < KEPT) free.push(block);
}
