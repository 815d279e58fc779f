/** Bytes that are kept have memory of their own: a piece of Node's shared pool, as `Buffer.concat` and `Buffer.from` give, keeps 64 KB alive for a list of a few objects. */
export function keptBytes(parts: readonly Uint8Array[]): Buffer {
  let length = 0;
  for (const part of parts) length += part.length;
  const whole = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
