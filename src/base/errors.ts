/**
 * An operating error: something outside went wrong and the caller may act on `code`. Bugs are plain `Error`s (see
 * `assert`). The message is one line that names the file, field or address and, where there is one, the fix.
 */
export class CodedError extends Error {
  readonly code: string;
  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'CodedError';
    this.code = code;
  }
}

/** Throws when `condition` is false: a programming error, never an input error. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`);
}

/**
 * Marks unreachable code; keeps exhaustive switches exhaustive.
 * @public
 */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${String(value)}`);
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whether the file system has no room, has reached a quota or is read-only. */
export function isDiskFull(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOSPC' || code === 'EDQUOT' || code === 'EROFS';
}
