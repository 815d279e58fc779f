/** Reasons for which auth rejects a request. services/rpc-errors.ts maps each code to etcd's gRPC status and text. */
export type AuthErrorCode =
  | 'root-user-missing'
  | 'root-role-missing'
  | 'user-exists'
  | 'user-empty'
  | 'user-not-found'
  | 'role-exists'
  | 'role-empty'
  | 'role-not-found'
  | 'role-not-granted'
  | 'permission-not-granted'
  | 'permission-not-given'
  | 'invalid-management'
  | 'permission-denied'
  | 'old-revision'
  | 'invalid-token'
  | 'authentication-failed'
  | 'password-for-no-password-user'
  | 'not-enabled'
  | 'verify-only';

export class AuthError extends Error {
  readonly code: AuthErrorCode;
  constructor(code: AuthErrorCode) {
    super(code);
    this.name = 'AuthError';
    this.code = code;
  }
}
