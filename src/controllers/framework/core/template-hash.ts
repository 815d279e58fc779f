/**
 * Short stable hashes of templates: FNV-1a over canonical JSON, encoded with letters that form no words (as upstream's
 * SafeEncodeString).
 */
import { jsonIgnoringEmptyLists } from './equality.ts';

const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';

/** Hash of a template. Equal templates have equal hashes; a different collision count gives a different hash. */
export function templateHash(template: unknown, collisionCount: number | undefined): string {
  const text = jsonIgnoringEmptyLists(template) + (collisionCount === undefined ? '' : `#${collisionCount}`);
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    hash = Math.imul(hash ^ (code & 0xff), 0x01000193);
    if (code > 0xff) hash = Math.imul(hash ^ (code >> 8), 0x01000193);
  }
  let encoded = '';
  for (const digit of String(hash >>> 0)) encoded += ALPHABET[digit.charCodeAt(0) % ALPHABET.length];
  return encoded;
}
