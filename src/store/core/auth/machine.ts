/**
 * Auth state of a member: users, roles and permissions. It is changed only by commands of the replicated log, applied
 * in log order on every member, so that all members make the same decisions. Source: etcd server/auth/store.go. Where
 * the source is ambiguous, this class behaves as Debian's etcd package does.
 *
 * The auth revision counts the changes. A caller carries the revision at which it was authenticated. A token that
 * contains the revision (JWT) becomes invalid with the next change.
 */

import { unreachable } from '../../../base/errors.ts';
import type { AuthPermission } from '../messages/auth.ts';
import { AuthError } from './errors.ts';
import { type Grants, isValidPermission, keyRange, mergeGrants } from './ranges.ts';
import { decodeSnapshot, encodeSnapshot } from './snapshot.ts';
import { type AuthCommand, type Caller, ROOT, type Role, type User } from './types.ts';

/** Performs a validated change. */
type Change = () => void;
const NO_CHANGE: Change = () => {};

export class AuthMachine {
  readonly #users = new Map<string, User>();
  readonly #roles = new Map<string, Role>();
  /** Cached permissions of each user, cleared with every change. */
  readonly #grants = new Map<string, Grants>();
  #enabled = false;
  #revision = 1;

  get enabled(): boolean {
    return this.#enabled;
  }

  get revision(): number {
    return this.#revision;
  }

  user(name: string): User | undefined {
    return this.#users.get(name);
  }

  role(name: string): Role | undefined {
    return this.#roles.get(name);
  }

  /** User names, sorted. */
  userNames(): readonly string[] {
    return [...this.#users.keys()].sort();
  }

  roleNames(): readonly string[] {
    return [...this.#roles.keys()].sort();
  }

  /** Throws AuthError if `command` would be rejected now. Does not change state. */
  check(command: AuthCommand): void {
    this.#prepare(command);
  }

  /** Applies the command, or returns the reason for its rejection without changing state. Deterministic. */
  apply(command: AuthCommand): AuthError | undefined {
    let change: Change;
    try {
      change = this.#prepare(command);
    } catch (error) {
      if (error instanceof AuthError) return error;
      throw error;
    }
    if (change === NO_CHANGE) return undefined;
    change();
    this.#grants.clear();
    // As in etcd, enabling auth does not increment the revision.
    if (command.kind !== 'enable') this.#revision += 1;
    return undefined;
  }

  /** Throws AuthError unless `caller` exists. */
  requireUser(caller: Caller | undefined): void {
    if (this.#enabled) this.#authenticated(caller, 'permission-denied');
  }

  /** Throws AuthError unless `caller` has the role root. */
  requireRoot(caller: Caller | undefined): void {
    if (!this.#enabled) return;
    if (!isRoot(this.#authenticated(caller, 'user-not-found'))) throw new AuthError('permission-denied');
  }

  /**
   * Throws AuthError unless `caller` may read, or write, every key of the range. As in etcd, only access to keys
   * requires a caller authenticated at the current revision, so that administrators can make several changes with one
   * token.
   */
  requireAccess(caller: Caller | undefined, access: 'read' | 'write', key: string, end: string): void {
    if (!this.#enabled) return;
    const user = this.#authenticated(caller, 'permission-denied');
    if ((caller as Caller).revision < this.#revision) throw new AuthError('old-revision');
    if (isRoot(user)) return;
    if (!this.#grantsOf(user)[access].contains(keyRange(key, end))) throw new AuthError('permission-denied');
  }

  export(): Uint8Array {
    return encodeSnapshot({
      enabled: this.#enabled,
      revision: this.#revision,
      users: this.userNames().map((name) => this.#users.get(name) as User),
      roles: this.roleNames().map((name) => this.#roles.get(name) as Role),
    });
  }

  /** Replaces the whole state with an exported state. If it throws WireError, the state is unchanged. */
  import(bytes: Uint8Array): void {
    const state = decodeSnapshot(bytes);
    this.#users.clear();
    this.#roles.clear();
    this.#grants.clear();
    this.#enabled = state.enabled;
    this.#revision = state.revision;
    for (const user of state.users) this.#users.set(user.name, user);
    for (const role of state.roles) this.#roles.set(role.name, role);
  }

  /** Throws AuthError 'user-empty', or `missing` if the user does not exist. */
  #authenticated(caller: Caller | undefined, missing: 'permission-denied' | 'user-not-found'): User {
    if (caller === undefined || caller.user === '') throw new AuthError('user-empty');
    const user = this.#users.get(caller.user);
    if (user === undefined) throw new AuthError(missing);
    return user;
  }

  #grantsOf(user: User): Grants {
    let grants = this.#grants.get(user.name);
    if (grants === undefined) {
      grants = mergeGrants(user.roles.flatMap((role) => this.#roles.get(role)?.permissions ?? []));
      this.#grants.set(user.name, grants);
    }
    return grants;
  }

  #prepare(command: AuthCommand): Change {
    switch (command.kind) {
      case 'enable':
        return this.#enable();
      case 'disable':
        if (!this.#enabled) return NO_CHANGE;
        return () => {
          this.#enabled = false;
        };
      case 'user-add': {
        const { name, passwordHash, noPassword } = command;
        if (name === '') throw new AuthError('user-empty');
        if (this.#users.has(name)) throw new AuthError('user-exists');
        return () => this.#users.set(name, { name, passwordHash, noPassword, roles: [] });
      }
      case 'user-delete':
        if (this.#enabled && command.name === ROOT) throw new AuthError('invalid-management');
        this.#existingUser(command.name);
        return () => this.#users.delete(command.name);
      case 'user-change-password': {
        const user = this.#existingUser(command.name);
        const passwordHash = user.noPassword ? '' : command.passwordHash;
        return () => this.#users.set(user.name, { ...user, passwordHash });
      }
      case 'user-grant-role':
        return this.#grantRole(command.name, command.role);
      case 'user-revoke-role':
        return this.#revokeRole(command.name, command.role);
      case 'role-add':
        if (command.role === '') throw new AuthError('role-empty');
        if (this.#roles.has(command.role)) throw new AuthError('role-exists');
        return () => this.#roles.set(command.role, { name: command.role, permissions: [] });
      case 'role-delete':
        return this.#deleteRole(command.role);
      case 'role-grant-permission':
        return this.#grantPermission(command.role, command.permission);
      case 'role-revoke-permission':
        return this.#revokePermission(command.role, command.key, command.end);
      case 'token-issue':
        if (!this.#enabled) throw new AuthError('not-enabled');
        if (!this.#users.has(command.name)) throw new AuthError('authentication-failed');
        return NO_CHANGE;
      default:
        return unreachable(command);
    }
  }

  #enable(): Change {
    if (this.#enabled) return NO_CHANGE;
    const root = this.#users.get(ROOT);
    if (root === undefined) throw new AuthError('root-user-missing');
    if (!isRoot(root)) throw new AuthError('root-role-missing');
    return () => {
      this.#enabled = true;
    };
  }

  #grantRole(name: string, role: string): Change {
    const user = this.#existingUser(name);
    // The role root is effective even if it was never created.
    if (role !== ROOT) this.#existingRole(role);
    if (user.roles.includes(role)) return NO_CHANGE;
    return () => this.#users.set(name, { ...user, roles: [...user.roles, role].sort() });
  }

  #revokeRole(name: string, role: string): Change {
    if (this.#enabled && name === ROOT && role === ROOT) throw new AuthError('invalid-management');
    const user = this.#existingUser(name);
    if (!user.roles.includes(role)) throw new AuthError('role-not-granted');
    return () => this.#users.set(name, without(user, role));
  }

  #deleteRole(name: string): Change {
    if (this.#enabled && name === ROOT) throw new AuthError('invalid-management');
    this.#existingRole(name);
    return () => {
      this.#roles.delete(name);
      for (const user of this.#users.values()) {
        if (user.roles.includes(name)) this.#users.set(user.name, without(user, name));
      }
    };
  }

  #grantPermission(name: string, permission: AuthPermission | undefined): Change {
    if (permission === undefined) throw new AuthError('permission-not-given');
    if (!isValidPermission(permission)) throw new AuthError('invalid-management');
    const role = this.#existingRole(name);
    const others = role.permissions.filter((other) => !sameRange(other, permission));
    const permissions = [...others, permission].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
    return () => this.#roles.set(name, { name, permissions });
  }

  #revokePermission(name: string, key: string, end: string): Change {
    const role = this.#existingRole(name);
    const permissions = role.permissions.filter((other) => !sameRange(other, { key, end }));
    if (permissions.length === role.permissions.length) throw new AuthError('permission-not-granted');
    return () => this.#roles.set(name, { name, permissions });
  }

  #existingUser(name: string): User {
    const user = this.#users.get(name);
    if (user === undefined) throw new AuthError('user-not-found');
    return user;
  }

  #existingRole(name: string): Role {
    const role = this.#roles.get(name);
    if (role === undefined) throw new AuthError('role-not-found');
    return role;
  }
}

function isRoot(user: User): boolean {
  return user.roles.includes(ROOT);
}

function without(user: User, role: string): User {
  return { ...user, roles: user.roles.filter((other) => other !== role) };
}

type Range = Pick<AuthPermission, 'key' | 'end'>;

function sameRange(a: Range, b: Range): boolean {
  return a.key === b.key && a.end === b.end;
}
