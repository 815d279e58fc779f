/**
 * Memory of the usage history: blocks of one byte per slot, in slabs that are allocated on demand. Free blocks form a
 * list whose links are in the blocks themselves.
 */
import { BLOCK_SLOTS } from './levels.ts';

const BLOCKS_PER_SLAB = 512;
export const SLAB_BYTES = BLOCKS_PER_SLAB * BLOCK_SLOTS;
/** Lowest identifier of a block. Identifiers have 16 bits; lower ones mark entries without a block (see series.ts). */
export const FIRST_ID = 2;
const MAX_SLABS = Math.floor((0x1_0000 - FIRST_ID) / BLOCKS_PER_SLAB);

export class BlockPool {
  private readonly mayGrow: () => boolean;
  private readonly slabs: Uint8Array[] = [];
  /** Next block that was never used. */
  private next = FIRST_ID;
  private freeHead = 0;
  used = 0;

  /** `mayGrow`: whether memory is left for one more slab. */
  constructor(mayGrow: () => boolean) {
    this.mayGrow = mayGrow;
  }

  get bytes(): number {
    return this.slabs.length * SLAB_BYTES;
  }

  /** Returns the identifier of a block with undefined content, or 0 if the memory is used up. */
  allocate(): number {
    const id = this.freeHead;
    if (id !== 0) {
      const block = this.block(id);
      this.freeHead = (block[0] ?? 0) | ((block[1] ?? 0) << 8);
      this.used += 1;
      return id;
    }
    if (this.next - FIRST_ID >= this.slabs.length * BLOCKS_PER_SLAB) {
      if (this.slabs.length >= MAX_SLABS || !this.mayGrow()) return 0;
      this.slabs.push(new Uint8Array(SLAB_BYTES));
    }
    this.used += 1;
    this.next += 1;
    return this.next - 1;
  }

  release(id: number): void {
    const block = this.block(id);
    block[0] = this.freeHead & 0xff;
    block[1] = this.freeHead >> 8;
    this.freeHead = id;
    this.used -= 1;
  }

  byteAt(id: number, index: number): number {
    const at = id - FIRST_ID;
    const slab = this.slabs[Math.floor(at / BLOCKS_PER_SLAB)];
    return slab?.[(at % BLOCKS_PER_SLAB) * BLOCK_SLOTS + index] ?? 0;
  }

  setByte(id: number, index: number, value: number): void {
    const at = id - FIRST_ID;
    const slab = this.slabs[Math.floor(at / BLOCKS_PER_SLAB)];
    if (slab !== undefined) slab[(at % BLOCKS_PER_SLAB) * BLOCK_SLOTS + index] = value;
  }

  /** The bytes of an allocated block. */
  block(id: number): Uint8Array {
    const at = id - FIRST_ID;
    const slab = this.slabs[Math.floor(at / BLOCKS_PER_SLAB)];
    if (slab === undefined) throw new RangeError(`no block ${id}`);
    const from = (at % BLOCKS_PER_SLAB) * BLOCK_SLOTS;
    return slab.subarray(from, from + BLOCK_SLOTS);
  }
}
