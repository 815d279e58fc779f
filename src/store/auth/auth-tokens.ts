import { randomBytes } from 'node:crypto';
import { CodedError } from '../../base/errors.ts';
import type { Clock } from '../../base/time/clock.ts';
import { jwtTokens, parseJwtOptions, type ReadKeyFile } from './jwt.ts';
import type { Tokens } from './tokens.ts';

/** etcd's `--auth-token-ttl`: a simple token expires when it was not used for this long. */
export const SIMPLE_TOKEN_TTL_MS = 300_000;
const MAX_SIMPLE_TOKENS = 50_000;

/** Simple tokens: random strings in the memory of every member. Source: etcd server/auth/simple_token.go. */
export function simpleTokens(
  clock: Clock,
  ttlMs: number = SIMPLE_TOKEN_TTL_MS,
  bytes: (length: number) => Uint8Array = randomBytes,
): Tokens {
  // Ordered by last use, so the first token expires next.
  const tokens = new Map<string, { readonly user: string; readonly expiresAtMs: number }>();
  const use = (token: string, user: string): void => {
    tokens.delete(token);
    tokens.set(token, { user, expiresAtMs: clock.monotonicMs() + ttlMs });
  };
  const sweep = (): void => {
    const now = clock.monotonicMs();
    for (const [token, { expiresAtMs }] of tokens) {
      if (expiresAtMs > now && tokens.size <= MAX_SIMPLE_TOKENS) return;
      tokens.delete(token);
    }
  };
  return {
    issue: async () => Buffer.from(bytes(24)).toString('base64url'),
    remember: (token, user) => {
      use(token, user);
      sweep();
    },
    caller: (token, revision) => {
      const found = tokens.get(token);
      if (found === undefined || found.expiresAtMs <= clock.monotonicMs()) return undefined;
      use(token, found.user);
      return { user: found.user, revision };
    },
    forget: (user) => {
      for (const [token, found] of tokens) if (found.user === user) tokens.delete(token);
    },
    clear: () => tokens.clear(),
  };
}

/**
 * Token provider for etcd's `--auth-token`: `simple`, or `jwt,pub-key=FILE,priv-key=FILE,sign-method=RS512,ttl=10m`.
 * Throws CodedError 'bad-config' with the option and the fix, and errors of `readFile`.
 */
export async function createTokens(
  option: string,
  clock: Clock,
  readFile: ReadKeyFile,
  simpleTtlMs: number = SIMPLE_TOKEN_TTL_MS,
): Promise<Tokens> {
  const [type, ...rest] = option.split(',');
  if (type === 'simple' && rest.length === 0) return simpleTokens(clock, simpleTtlMs);
  if (type !== 'jwt') {
    throw new CodedError('bad-config', `auth-token: ${option} is neither simple nor jwt,sign-method=...,priv-key=FILE`);
  }
  return jwtTokens(await parseJwtOptions(rest, readFile), clock);
}
