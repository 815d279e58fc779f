import type { Caller } from '../core/auth/types.ts';

/** Issues and verifies auth tokens. */
export interface Tokens {
  /** Issues a token for `user`. Throws AuthError 'verify-only' without a signing key. */
  issue(user: string, revision: number): Promise<string>;
  /**
   * Registers `token` of `user`. Present only for tokens that are not self-contained, which every member must store.
   */
  remember?(token: string, user: string): void;
  /** User of `token`. Undefined when it is unknown, forged or expired. `revision`: current auth revision. */
  caller(token: string, revision: number): Caller | undefined;
  /** Invalidates the tokens of a user who was deleted or whose password changed. */
  forget(user: string): void;
  /** Invalidates all tokens, because auth was disabled or the whole state was replaced. */
  clear(): void;
}
