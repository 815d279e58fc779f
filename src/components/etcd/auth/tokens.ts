import type { Caller } from '../../../core/etcdauth/types.ts';

/** Issues and verifies auth tokens. */
export interface Tokens {
  /** Issues a token for `user`. Throws AuthError 'verify-only' without a signing key. */
  issue(user: string, revision: number): Promise<string>;
  /**
   * Registers `token` of `user`. Present only for tokens that are not self-contained: every member has to know them.
   */
  remember?(token: string, user: string): void;
  /** The user of `token`; undefined when it is unknown, forged or expired. `revision` is the current auth revision. */
  caller(token: string, revision: number): Caller | undefined;
  /** The password of `user` was changed, or the user was deleted. */
  forget(user: string): void;
  /** Auth was turned off, or the whole state was replaced. */
  clear(): void;
}
