/**
 * Users, roles and permissions of etcd's auth. Source: etcd api/authpb/auth.proto. Keys are latin1 strings, one
 * character per byte (see wire/protobuf/protobuf.ts). A range end of '' means a single key, '\0' all keys from the
 * start on.
 */
import type { AuthPermission } from '../messages/auth.ts';

export interface User {
  readonly name: string;
  /** Hash from `PasswordHasher`; '' without a password. */
  readonly passwordHash: string;
  /** Whether the user can only authenticate with a client certificate. */
  readonly noPassword: boolean;
  /** Role names, sorted. */
  readonly roles: readonly string[];
}

export interface Role {
  readonly name: string;
  /** Sorted by key. */
  readonly permissions: readonly AuthPermission[];
}

/** Authenticated user, and the auth revision at the time of its authentication. */
export interface Caller {
  readonly user: string;
  readonly revision: number;
}

/** Name of the user that must exist before auth can be enabled, and of the role with all permissions. */
export const ROOT = 'root';

/**
 * A change of the auth state: one entry of the replicated log. 'token-issue' does not change the auth state; it
 * distributes a simple token to every member.
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
