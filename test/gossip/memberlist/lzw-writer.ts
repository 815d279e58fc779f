/** An LZW compressor for testing the decompressor: least significant bit first, 9 to 12 bits. */
export function compressLzw(data: Uint8Array): Uint8Array {
  const out: number[] = [];
  let bits = 0;
  let count = 0;
  let width = 9;
  const write = (code: number): void => {
    bits |= code << count;
    count += width;
    while (count >= 8) {
      out.push(bits & 0xff);
      bits >>>= 8;
      count -= 8;
    }
  };
  let table = new Map<string, number>();
  let next = 258;
  let current = '';
  const codeOf = (text: string): number => (text.length === 1 ? text.charCodeAt(0) : (table.get(text) ?? -1));
  write(256);
  for (const byte of data) {
    const longer = current + String.fromCharCode(byte);
    if (longer.length === 1 || table.has(longer)) {
      current = longer;
      continue;
    }
    write(codeOf(current));
    if (next < 4095) {
      table.set(longer, next++);
      // The decompressor's table is one entry behind.
      if (next - 1 >= 1 << width) width++;
    } else {
      write(256);
      table = new Map();
      next = 258;
      width = 9;
    }
    current = String.fromCharCode(byte);
  }
  if (current !== '') write(codeOf(current));
  if (next >= 1 << width && width < 12) width++;
  write(257);
  if (count > 0) out.push(bits & 0xff);
  return Uint8Array.from(out);
}
