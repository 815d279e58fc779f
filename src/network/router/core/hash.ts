/** 64-bit FNV-1a over UTF-16 units, as 16 hexadecimal digits. Distributes keys; not cryptographic. */
export function fnv(text: string): string {
  let high = 0xcbf29ce4;
  let low = 0x84222325;
  for (let at = 0; at < text.length; at++) {
    low = (low ^ text.charCodeAt(at)) >>> 0;
    // Multiplies by the FNV prime, 2^40 + 0x1b3.
    const product = low * 0x1b3;
    high = (Math.imul(high, 0x1b3) + Math.floor(product / 0x1_0000_0000) + (low << 8)) >>> 0;
    low = product >>> 0;
  }
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0');
}

export const hashNumber = (text: string): number => Number.parseInt(fnv(text).slice(-8), 16);
