/** Password hashes of htpasswd files. Source: htpasswd(1); Apache's apr_md5.c for `$apr1$`. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { compareSync } from 'bcryptjs';

const ITOA64 = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ROUNDS = 1000;
const DIGEST = 16;
/** Order in which apr1 encodes the bytes of the digest, in groups of three. */
const ORDER = [
  [0, 6, 12],
  [1, 7, 13],
  [2, 8, 14],
  [3, 9, 15],
  [4, 10, 5],
] as const;
/** Maximum cost of a bcrypt hash. Verifying a hash with a higher cost takes minutes. */
const MAX_BCRYPT_COST = 15;

/** Whether the password matches the hash. Returns false for unsupported kinds of hashes. Blocks the calling thread. */
export function isPasswordOf(password: string, hash: string): boolean {
  const [, cost] = /^\$2[abxy]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(hash) ?? [];
  if (cost !== undefined)
    return Number(cost) <= MAX_BCRYPT_COST && compareSync(password, hash.replace(/^\$2[xy]\$/, '$2b$'));
  const [, salt] = /^\$apr1\$([^$]{1,8})\$[./A-Za-z0-9]{22}$/.exec(hash) ?? [];
  if (salt !== undefined) return same(apr1(password, salt), hash);
  if (hash.startsWith('{SHA}')) return same(`{SHA}${createHash('sha1').update(password).digest('base64')}`, hash);
  return false;
}

const same = (made: string, given: string): boolean =>
  made.length === given.length && timingSafeEqual(Buffer.from(made), Buffer.from(given));

const md5 = (...parts: readonly (string | Uint8Array)[]): Buffer => {
  const hash = createHash('md5');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

export function apr1(text: string, salt: string): string {
  const password = Buffer.from(text);
  const inner = md5(password, salt, password);
  const first: (string | Uint8Array)[] = [password, '$apr1$', salt];
  for (let left = password.length; left > 0; left -= DIGEST) first.push(inner.subarray(0, Math.min(DIGEST, left)));
  for (let bits = password.length; bits > 0; bits >>= 1)
    first.push(bits % 2 === 1 ? Buffer.from([0]) : password.subarray(0, 1));
  let digest = md5(...first);
  for (let round = 0; round < ROUNDS; round++) {
    const odd = round % 2 === 1;
    const parts: (string | Uint8Array)[] = [odd ? password : digest];
    if (round % 3 !== 0) parts.push(salt);
    if (round % 7 !== 0) parts.push(password);
    parts.push(odd ? digest : password);
    digest = md5(...parts);
  }
  const at = (index: number): number => digest[index] ?? 0;
  let encoded = '';
  for (const [a, b, c] of ORDER) encoded += to64((at(a) << 16) | (at(b) << 8) | at(c), 4);
  return `$apr1$${salt}$${encoded}${to64(at(11), 2)}`;
}

function to64(value: number, length: number): string {
  let text = '';
  for (let index = 0, rest = value; index < length; index++, rest >>= 6) text += ITOA64[rest & 63];
  return text;
}
