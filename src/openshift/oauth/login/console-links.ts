/**
 * One-time links of `hyperedge console`. Secrets are 32 random bytes. Only their hashes are kept, in the memory of the
 * API server that issued the link, so a link works at that server only and ends with its process. Uses monotonic time:
 * a clock that is set back does not extend a link.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { LoginUser } from '../providers/mapping.ts';

export const LINK_SECONDS = 60;
const MAX_LINKS = 16;
const SECRET = /^[A-Za-z0-9_-]{43}$/;

interface Link {
  readonly hash: Buffer;
  readonly user: LoginUser;
  readonly untilMs: number;
}

export class ConsoleLinks {
  readonly #random: () => string;
  readonly #nowMs: () => number;
  #links: readonly Link[] = [];

  /** `random` returns 32 bytes in base64url, `nowMs` monotonic time. */
  constructor(random: () => string, nowMs: () => number) {
    this.#random = random;
    this.#nowMs = nowMs;
  }

  /** Returns the secret of a new link. The oldest link ends if there are too many. */
  issue(user: LoginUser): string {
    const secret = this.#random();
    const link = { hash: hashOf(secret), user, untilMs: this.#nowMs() + LINK_SECONDS * 1000 };
    this.#links = [...this.#live(), link].slice(-MAX_LINKS);
    return secret;
  }

  /** User of a link that is neither used nor expired. The link is used by this call. */
  redeem(secret: string): LoginUser | undefined {
    if (!SECRET.test(secret)) return undefined;
    const hash = hashOf(secret);
    // All links are compared, so that the time does not depend on the one that matches.
    const matching = this.#live().filter((link) => timingSafeEqual(link.hash, hash));
    this.#links = this.#live().filter((link) => !matching.includes(link));
    return matching[0]?.user;
  }

  #live(): readonly Link[] {
    const nowMs = this.#nowMs();
    return this.#links.filter(({ untilMs }) => nowMs < untilMs);
  }
}

const hashOf = (secret: string): Buffer => createHash('sha256').update(secret).digest();
