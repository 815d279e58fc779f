/**
 * Users, roles and permissions of etcd's auth. Source: etcd api/authpb/auth.proto. Keys are latin1 strings, one
 * character per byte (see api/etcd/wire.ts); a range end of '' means the key alone, '\0' everything from the key on.
 */
import type { AuthPermission } from '../../api/etcd/auth.ts';

export interface User {
  readonly name: string;
  /** What `PasswordHasher` made of the password; '' when there is none. */
  readonly passwordHash: string;
  /** May only come in with a client certificate. */
  readonly noPassword: boolean;
  /** In order. */
  readonly roles: readonly string[];
}

export interface Role {
  readonly name: string;
  /** In the order of their keys. */
  readonly permissions: readonly AuthPermission[];
}

/** Who asks, and the auth revision at which that was established. */
export interface Caller {
  readonly user: string;
  readonly revision: number;
}

/** The user that must exist to enable auth, and the role that may do everything. */
export const ROOT = 'root';

/**
 * A change of the auth state: one entry of the replicated log. 'token-issue' changes nothing: it tells every member who
 * carries a token.
 */
export type AuthCommand =
  | { readonly kind: 'enable' }
  | { readonly kind: 'disable' }
  | { readonly kind: 'user-add'; readonly name: string; readonly passwordHash: string; readonly noPassword: boolean }
  | { readonly kind: 'user-delete'; readonly name: string }
  | { readonly kind: 'token-issue'; readonly name: string; readonly token: string }
  | { readonly kind: 'user-change-password'; readonly name: string; readonly passwordHash: string }
  | { readonly kind: 'user-grant-role'; readonly name: string; readonly role: string }
  | { readonly kind: 'user-revoke-role'; readonly name: string; readonly role: string }
  | { readonly kind: 'role-add'; readonly role: string }
  | { readonly kind: 'role-delete'; readonly role: string }
  | { readonly kind: 'role-grant-permission'; readonly role: string; readonly permission: AuthPermission | undefined }
  | {
      readonly kind: 'role-revoke-permission';
      readonly role: string;
      readonly key: string;
      readonly end: string;
    };
