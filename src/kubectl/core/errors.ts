/** Error of the client itself, printed as `error: …`. The exit code is 1, as kubectl's. */
export class ClientError extends Error {
  readonly exitCode: number;
  /** With `usage`, a line that names the help of the verb follows. */
  readonly usage: boolean;
  /** Printed without `error: ` before it. */
  readonly isPlain: boolean;

  constructor(
    message: string,
    options: { readonly exitCode?: number; readonly usage?: boolean; readonly isPlain?: boolean } = {},
  ) {
    super(message);
    this.name = 'ClientError';
    this.exitCode = options.exitCode ?? 1;
    this.usage = options.usage ?? false;
    this.isPlain = options.isPlain ?? false;
  }
}
