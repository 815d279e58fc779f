/** Base64 of `data` fields, without Node's Buffer, because src/api does not use the runtime. */

/** Number of bytes that a valid, padded base64 text encodes. */
export function base64Bytes(text: string): number {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  return (text.length / 4) * 3 - padding;
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Encodes text as base64 of its UTF-8 bytes. */
export function encodeBase64(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const parts: string[] = [];
  for (let index = 0; index < bytes.length; index += 3) {
    const [a = 0, b, c] = [bytes[index], bytes[index + 1], bytes[index + 2]];
    const bits = (a << 16) | ((b ?? 0) << 8) | (c ?? 0);
    parts.push(
      (ALPHABET[bits >> 18] ?? '') +
        (ALPHABET[(bits >> 12) & 63] ?? '') +
        (b === undefined ? '=' : (ALPHABET[(bits >> 6) & 63] ?? '')) +
        (c === undefined ? '=' : (ALPHABET[bits & 63] ?? '')),
    );
  }
  return parts.join('');
}

/** Decodes base64 of UTF-8 text; undefined if it is invalid. */
export function decodeBase64(text: string): string | undefined {
  try {
    const binary = atob(text);
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(binary, (each) => each.charCodeAt(0)));
  } catch {
    return undefined;
  }
}
