/**
 * Auth state of this member: the replicated state, the tokens it has issued, and the identity of callers. `change`
 * proposes a change to the log, and `apply` executes it on every member.
 */
import { randomBytes } from 'node:crypto';
import { CodedError } from '../../base/errors.ts';
import type { CallIdentity } from '../../wire/grpc/port.ts';
import { decodeProposal, encodeProposal } from '../core/auth/command.ts';
import { AuthError } from '../core/auth/errors.ts';
import { AuthMachine } from '../core/auth/machine.ts';
import type { AuthCommand, Caller } from '../core/auth/types.ts';
import type { PasswordHasher } from './password.ts';
import type { Tokens } from './tokens.ts';

export interface AuthProgress {
  applied(): number;
  /** Resolves when `index` has been applied here, or after the request timeout. */
  appliedAt(index: number): Promise<void>;
  /** Whether there is a leader that may have newer state. */
  isLed(): boolean;
  /** Whether this member is stopping, so that it will not apply further entries. */
  readonly stopped: boolean;
  /** Settles when the permission changes in progress have been applied here. Undefined when there are none. */
  changed(): Promise<void> | undefined;
}

export interface AuthDeps {
  /** Replicates a command. Resolves when `apply` has processed it on this member. */
  readonly replicate: (command: Uint8Array) => Promise<void>;
  readonly tokens: Tokens;
  /** Progress of this member in the log. */
  readonly progress: AuthProgress;
  readonly hasher: PasswordHasher;
  /** Whether all members support replicated tokens. */
  readonly replicatesTokens: () => boolean;
  /** Whether the certificate's common name is the user of a client without a token. */
  readonly clientCertAuth: boolean;
  /** Source of random bytes. Default: `randomBytes` of Node.js. */
  readonly bytes?: (length: number) => Uint8Array;
}

/** Maximum number of checks, because a password that changes during the check is checked again, as in etcd. */
const ATTEMPTS = 5;
/** Maximum number of local tokens, which suffices for the operators of a cluster without a quorum. */
const MAX_ALONE = 100;

export class Auth {
  readonly machine = new AuthMachine();
  readonly #deps: AuthDeps;
  /** Results of `apply` for commands that this member proposed and still waits for. */
  readonly #outcomes = new Map<bigint, AuthError | undefined>();
  /** Tokens valid on this member only, while there is no leader. */
  readonly #alone = new Map<string, string>();
  #decoy: Promise<string> | undefined;

  constructor(deps: AuthDeps) {
    this.#deps = deps;
  }

  /**
   * Caller of `call`. Undefined when it has no identity. Throws AuthError 'invalid-token', or CodedError 'closed' when
   * this member is stopping and other members may know the token. Must not be used while auth is off.
   */
  caller(call: CallIdentity): Caller | undefined {
    if (!this.machine.enabled) return undefined;
    const { revision } = this.machine;
    const token = tokenOf(call);
    if (token !== undefined) {
      const alone = this.#whoIsAlone(token);
      if (alone !== undefined) return { user: alone, revision };
      const caller = this.#deps.tokens.caller(this.#split(token).name, revision);
      if (caller !== undefined) return caller;
      if (this.#deps.progress.stopped) throw new CodedError('closed', 'the store is stopping');
      throw new AuthError('invalid-token');
    }
    // The certificate of a gateway does not identify its client.
    if (!this.#deps.clientCertAuth || call.metadata('grpcgateway-accept') !== undefined) return undefined;
    const user = call.peerCommonName();
    return user === '' ? undefined : { user, revision };
  }

  /**
   * Resolves when this member can authorize `call`: it has applied the latest permission changes and the entry of the
   * call's token, which another member may have issued. Undefined when no wait is required.
   */
  awaited(call: CallIdentity): Promise<void> | undefined {
    const changed = this.#deps.progress.changed();
    return changed === undefined ? this.#tokenApplied(call) : changed.then(() => this.#tokenApplied(call));
  }

  #tokenApplied(call: CallIdentity): Promise<void> | undefined {
    const token = this.machine.enabled ? tokenOf(call) : undefined;
    if (token === undefined) return undefined;
    const { applied, appliedAt } = this.#deps.progress;
    const { index } = this.#split(token);
    return index > applied() ? appliedAt(index) : undefined;
  }

  /** Splits a replicated token, which ends with the log index of its entry. */
  #split(token: string): { readonly name: string; readonly index: number } {
    const [, name, index] = this.#deps.tokens.remember === undefined ? [] : (/^(.*)\.(\d{1,15})$/.exec(token) ?? []);
    return { name: name ?? token, index: Number(index ?? 0) };
  }

  /** User of `token`, for members that forward a call. Undefined when the token is invalid here. */
  tokenUser(token: string): string | undefined {
    return this.#deps.tokens.caller(this.#split(token).name, this.machine.revision)?.user;
  }

  /** Replicates a change. Throws AuthError when it is rejected, either here or when applied. */
  async change(command: AuthCommand): Promise<void> {
    this.machine.check(command);
    const id = Buffer.from((this.#deps.bytes ?? randomBytes)(8)).readBigInt64BE();
    this.#outcomes.set(id, undefined);
    try {
      await this.#deps.replicate(encodeProposal({ id, command }));
      const refused = this.#outcomes.get(id);
      if (refused !== undefined) throw refused;
    } finally {
      this.#outcomes.delete(id);
    }
  }

  /**
   * Applies a command from the log; called on every member in log order. A command that is no longer valid changes no
   * state, and its proposer gets the error. Returns whether the state has changed. Throws WireError for invalid bytes,
   * which indicate a damaged log or a newer build.
   */
  apply(bytes: Uint8Array): boolean {
    const { id, command } = decodeProposal(bytes);
    const refused = this.machine.apply(command);
    if (this.#outcomes.has(id)) this.#outcomes.set(id, refused);
    if (refused !== undefined) return false;
    if (command.kind === 'token-issue') {
      this.#deps.tokens.remember?.(command.token, command.name);
      return false;
    }
    if (command.kind === 'user-delete' || command.kind === 'user-change-password')
      this.#deps.tokens.forget(command.name);
    else if (command.kind === 'disable') this.#deps.tokens.clear();
    return true;
  }

  changesPermissions(bytes: Uint8Array): boolean {
    return decodeProposal(bytes).command.kind !== 'token-issue';
  }

  /** The whole state, for snapshots. */
  export(): Uint8Array {
    return this.machine.export();
  }

  /** Replaces the whole state with an exported state. Throws WireError without any change. */
  import(bytes: Uint8Array): void {
    this.machine.import(bytes);
    this.#deps.tokens.clear();
  }

  hash(password: string): Promise<string> {
    return this.#deps.hasher.hash(password);
  }

  #whoIsAlone(token: string): string | undefined {
    if (this.#alone.size > 0 && this.#deps.progress.isLed()) this.#alone.clear();
    return this.#alone.get(token);
  }

  /**
   * Issues a token for a user with a correct password. `alone`: without a leader, issues a token that is valid only on
   * this member and only until a leader is elected. Throws AuthError.
   */
  async authenticate(name: string, password: string, alone = false): Promise<string> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      if (!this.machine.enabled) throw new AuthError('not-enabled');
      const { revision } = this.machine;
      const user = this.machine.user(name);
      if (user?.noPassword) throw new AuthError('password-for-no-password-user');
      // Verification for an unknown user takes as long as for an existing user.
      const known = await this.#deps.hasher.verify(password, user?.passwordHash ?? (await this.#decoyHash()));
      if (user === undefined || !known) throw new AuthError('authentication-failed');
      if (this.machine.revision !== revision) continue;
      const { tokens, progress, replicatesTokens } = this.#deps;
      const token = await tokens.issue(name, revision);
      if (tokens.remember === undefined) return token;
      if (!alone && !replicatesTokens()) {
        // Some members do not support replicated tokens yet, so the token is valid only on this member.
        tokens.remember(token, name);
        return token;
      }
      if (alone) {
        for (const [oldest] of this.#alone) if (this.#alone.size >= MAX_ALONE) this.#alone.delete(oldest);
        this.#alone.set(token, name);
        return token;
      }
      await this.change({ kind: 'token-issue', name, token });
      if (this.machine.revision === revision) return `${token}.${progress.applied()}`;
    }
    throw new AuthError('old-revision');
  }

  #decoyHash(): Promise<string> {
    this.#decoy ??= this.#deps.hasher.hash(randomBytes(16).toString('hex'));
    return this.#decoy;
  }
}

function tokenOf(call: CallIdentity): string | undefined {
  return call.metadata('token') ?? call.metadata('authorization');
}
