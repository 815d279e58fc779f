/**
 * One-time links of `hyperedge console`. The secret of a link has 32 random bytes. The API server that issues a link
 * keeps only a hash of the secret, in memory. Therefore the link works only at this server, and only until its process
 * ends. Expiry uses monotonic time, so that setting back the clock does not extend a link.
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

  /** `random` returns 32 random bytes in base64url. `nowMs` returns the monotonic time. */
  constructor(random: () => string, nowMs: () => number) {
    this.#random = random;
    this.#nowMs = nowMs;
  }

  /** Creates a link and returns its secret. If there are too many links, the oldest link becomes invalid. */
  issue(user: LoginUser): string {
    const secret = this.#random();
    const link = { hash: hashOf(secret), user, untilMs: this.#nowMs() + LINK_SECONDS * 1000 };
    this.#links = [...this.#live(), link].slice(-MAX_LINKS);
    return secret;
  }

  /** Returns the user of a link and invalidates the link. Returns undefined if the link is unknown, used or expired. */
  redeem(secret: string): LoginUser | undefined {
    if (!SECRET.test(secret)) return undefined;
    const hash = hashOf(secret);
    // Compare all links, so that the duration does not depend on which link matches.
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
