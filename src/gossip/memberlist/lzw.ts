/**
 * Decompresses the LZW format that memberlist peers may use (Go's `compress/lzw`: least significant bit first, 8-bit
 * literals, codes of 9 to 12 bits). This module does not compress: messages are small, and compression before
 * encryption reveals information about their content.
 */
const CLEAR = 256;
const END = 257;
const MAX_WIDTH = 12;
const NONE = -1;

/** Returns undefined if the data is damaged, or as soon as the result exceeds `limit` bytes. */
export function decompressLzw(data: Uint8Array, limit: number): Uint8Array | undefined {
  const prefix = new Int16Array(1 << MAX_WIDTH);
  const suffix = new Uint8Array(1 << MAX_WIDTH);
  const scratch = new Uint8Array(1 << MAX_WIDTH);
  let out = new Uint8Array(Math.min(limit, Math.max(256, data.length * 4)));
  let length = 0;
  let bits = 0;
  let bitCount = 0;
  let at = 0;
  let width = 9;
  let high = END;
  let overflow = 1 << width;
  let last = NONE;

  const emit = (from: Uint8Array, start: number, end: number): boolean => {
    const size = end - start;
    if (length + size > limit) return false;
    if (length + size > out.length) {
      const larger = new Uint8Array(Math.min(limit, Math.max(out.length * 2, length + size)));
      larger.set(out.subarray(0, length));
      out = larger;
    }
    out.set(from.subarray(start, end), length);
    length += size;
    return true;
  };

  for (;;) {
    while (bitCount < width) {
      const byte = data[at++];
      if (byte === undefined) return undefined;
      bits |= byte << bitCount;
      bitCount += 8;
    }
    const code = bits & ((1 << width) - 1);
    bits >>>= width;
    bitCount -= width;

    if (code === END) return out.subarray(0, length);
    if (code === CLEAR) {
      width = 9;
      high = END;
      overflow = 1 << width;
      last = NONE;
      continue;
    }
    // The bytes of a code, written backwards from the end of the scratch space.
    let start = scratch.length;
    let first: number;
    if (code < CLEAR) {
      first = code;
      scratch[--start] = code;
    } else if (code <= high) {
      let walk = code;
      if (code === high) {
        // The code refers to the entry that it creates: its bytes are the previous bytes followed by their first byte.
        if (last === NONE) return undefined;
        walk = last;
        while (walk >= CLEAR) walk = prefix[walk] ?? 0;
        scratch[--start] = walk;
        walk = last;
      }
      while (walk >= CLEAR) {
        scratch[--start] = suffix[walk] ?? 0;
        walk = prefix[walk] ?? 0;
      }
      first = walk;
      scratch[--start] = walk;
    } else {
      return undefined;
    }
    if (!emit(scratch, start, scratch.length)) return undefined;
    if (last !== NONE) {
      suffix[high] = first;
      prefix[high] = last;
    }
    last = code;
    high++;
    if (high >= overflow) {
      if (width === MAX_WIDTH) {
        // The table is full. Entries are added again after the sender has cleared it.
        last = NONE;
        high--;
      } else {
        width++;
        overflow = 1 << width;
      }
    }
  }
}
