/**
 * Reasons for which the store rejects a request. services/rpc-errors.ts maps each code to etcd's gRPC status and text.
 */
export type MvccErrorCode =
  | 'compacted'
  | 'future-revision'
  | 'empty-key'
  | 'key-not-found'
  | 'value-provided'
  | 'lease-provided'
  | 'too-many-operations'
  | 'duplicate-key'
  | 'invalid-sort'
  | 'lease-not-found'
  | 'lease-exists'
  | 'lease-ttl-too-large';

export class MvccError extends Error {
  readonly code: MvccErrorCode;
  constructor(code: MvccErrorCode) {
    super(code);
    this.name = 'MvccError';
    this.code = code;
  }
}
