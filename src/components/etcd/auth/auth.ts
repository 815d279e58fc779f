/**
 * Auth on this member: the replicated state, the tokens it has given out, and who a caller is. Changes are proposed with `change`,
 * go through the log, and take effect in `apply` on every member.
 */
import { randomBytes } from 'node:crypto';
import { decodeProposal, encodeProposal } from '../../../core/etcdauth/command.ts';
import { AuthError } from '../../../core/etcdauth/errors.ts';
import { AuthMachine } from '../../../core/etcdauth/machine.ts';
import type { AuthCommand, Caller } from '../../../core/etcdauth/types.ts';
import type { CallIdentity } from '../port.ts';
import type { Tokens } from './auth-tokens.ts';
import type { PasswordHasher } from './password.ts';

export interface AuthProgress {
  applied(): number;
  /** Resolves when `index` has been applied here, or does not seem to come. */
  appliedAt(index: number): Promise<void>;
  /** Whether there is a leader that could know better. */
  isLed(): boolean;
  /** Settles when the changes of rights that are under way here have been applied; undefined: there are none. */
  changed(): Promise<void> | undefined;
}

export interface AuthDeps {
  /** Puts a command into the replicated log; resolves when `apply` has had it on this member. */
  readonly replicate: (command: Uint8Array) => Promise<void>;
  readonly tokens: Tokens;
  /** How far this member has got in the log. */
  readonly progress: AuthProgress;
  readonly hasher: PasswordHasher;
  /** Whether all members know what it means to be told of a token. */
  readonly tellsTokens: () => boolean;
  /** A client without a token is whom its certificate's common name says. */
  readonly clientCertAuth: boolean;
  /** Random ones; Node's own by default. */
  readonly bytes?: (length: number) => Uint8Array;
}

/** A password that changes while it is checked is checked again, as etcd does; not for ever. */
const ATTEMPTS = 5;
/** More than the people who look after a cluster that has lost its quorum. */
const MAX_ALONE = 100;

export class Auth {
  readonly machine = new AuthMachine();
  readonly #deps: AuthDeps;
  /** What `apply` made of the commands that this member has proposed and still waits for. */
  readonly #outcomes = new Map<bigint, AuthError | undefined>();
  /** Tokens that count while nobody leads, and here only. */
  readonly #alone = new Map<string, string>();
  #decoy: Promise<string> | undefined;

  constructor(deps: AuthDeps) {
    this.#deps = deps;
  }

  /** Who makes `call`: undefined when it does not say. Throws AuthError 'invalid-token'. Of no meaning while auth is off. */
  caller(call: CallIdentity): Caller | undefined {
    if (!this.machine.enabled) return undefined;
    const { revision } = this.machine;
    const token = tokenOf(call);
    if (token !== undefined) {
      const alone = this.#whoIsAlone(token);
      if (alone !== undefined) return { user: alone, revision };
      const caller = this.#deps.tokens.caller(this.#split(token).name, revision);
      if (caller === undefined) throw new AuthError('invalid-token');
      return caller;
    }
    // A gateway's certificate says nothing about whom it speaks for.
    if (!this.#deps.clientCertAuth || call.metadata('grpcgateway-accept') !== undefined) return undefined;
    const user = call.peerCommonName();
    return user === '' ? undefined : { user, revision };
  }

  /**
   * Resolves when this member knows what `call` may do: has applied what changes rights, and has been told of the token that it shows; undefined when it
   * need not wait. Whoever has a token from one member and asks another is not to be a stranger there.
   */
  awaited(call: CallIdentity): Promise<void> | undefined {
    const changed = this.#deps.progress.changed();
    return changed === undefined ? this.#told(call) : changed.then(() => this.#told(call));
  }

  #told(call: CallIdentity): Promise<void> | undefined {
    const token = this.machine.enabled ? tokenOf(call) : undefined;
    if (token === undefined) return undefined;
    const { applied, appliedAt } = this.#deps.progress;
    const { index } = this.#split(token);
    return index > applied() ? appliedAt(index) : undefined;
  }

  /** A token that members are told of ends in the index at which they have been. */
  #split(token: string): { readonly name: string; readonly index: number } {
    const [, name, index] = this.#deps.tokens.remember === undefined ? [] : (/^(.*)\.(\d{1,15})$/.exec(token) ?? []);
    return { name: name ?? token, index: Number(index ?? 0) };
  }

  /** The user that carries `token`, for members that pass a call on; undefined when it is not valid here. */
  tokenUser(token: string): string | undefined {
    return this.#deps.tokens.caller(this.#split(token).name, this.machine.revision)?.user;
  }

  /** Makes a change on all members. Throws AuthError when it is refused, here or where the log orders it. */
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
   * Takes a command out of the log. On every member, in log order. A command that was in order when proposed and no longer is
   * changes nothing; its proposer is told. Whether the state has changed. Throws WireError for bytes that are no command: the log is damaged, or newer than us.
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

  changesRights(bytes: Uint8Array): boolean {
    return decodeProposal(bytes).command.kind !== 'token-issue';
  }

  /** The whole state, for snapshots. */
  export(): Uint8Array {
    return this.machine.export();
  }

  /** Replaces the whole state by an exported one. Throws WireError, and then nothing has changed. */
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

  /** A token for whoever knows the password. `alone`: it counts here and while nobody leads, when nobody else can be told of it. Throws AuthError. */
  async authenticate(name: string, password: string, alone = false): Promise<string> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      if (!this.machine.enabled) throw new AuthError('not-enabled');
      const { revision } = this.machine;
      const user = this.machine.user(name);
      if (user?.noPassword) throw new AuthError('password-for-no-password-user');
      // Names that do not exist take as long as those that do.
      const known = await this.#deps.hasher.verify(password, user?.passwordHash ?? (await this.#decoyHash()));
      if (user === undefined || !known) throw new AuthError('authentication-failed');
      if (this.machine.revision !== revision) continue;
      const { tokens, progress, tellsTokens } = this.#deps;
      const token = await tokens.issue(name, revision);
      if (tokens.remember === undefined) return token;
      if (!alone && !tellsTokens()) {
        // While members are updated: it counts at this one.
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
