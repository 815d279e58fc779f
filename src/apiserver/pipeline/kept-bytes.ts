/** Copies bytes into memory outside Node's shared pool: a cached slice of the pool would keep its 64 KB alive. */
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
