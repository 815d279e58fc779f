/**
 * An operating error: an external failure that the caller may handle by its `code`. Bugs are plain `Error`s (see
 * `assert`). The message is one line. It names the file, field or address and, if possible, a fix.
 */
export class CodedError extends Error {
  readonly code: string;
  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'CodedError';
    this.code = code;
  }
}

/** Throws if `condition` is false. For programming errors, never for invalid input. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`);
}

/**
 * Makes the compiler check that a switch is exhaustive.
 * @public
 */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${String(value)}`);
}

/** Hint of Node.js in errors of TLS. It does not apply to the executable, which reads the authorities of the system. */
const NODE_HINT = '; if the root CA is installed locally, try running Node.js with --use-system-ca';

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message.replace(NODE_HINT, '') : String(error);
}

/**
 * Handler for a rejection that is ignored on purpose. `reason` explains why the error can be ignored, for example
 * because another caller receives it. The reason is documentation and has no effect.
 */
export function ignore(_reason: string): (error: unknown) => void {
  return doNothing;
}

function doNothing(): void {}

/**
 * Whether a file operation failed because the file does not exist. After any other failure, such as EIO or EMFILE, it
 * is unknown whether the file exists.
 */
export function isMissingFile(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** Handler for the rejection of a file operation: returns `value` if the file does not exist, else throws the error. */
export function ifMissing<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (isMissingFile(error)) return value;
    throw error;
  };
}

/** Whether the file system is full, over quota or read-only. */
export function isDiskFull(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOSPC' || code === 'EDQUOT' || code === 'EROFS';
}
