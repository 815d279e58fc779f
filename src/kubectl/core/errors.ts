/** Error of the client itself, printed as `error: …`. The exit code is 1, as kubectl's. */
export class ClientError extends Error {
  readonly exitCode: number;
  /** Whether a line that points to the help of the verb is printed after the message. */
  readonly usage: boolean;
  /** Whether the message is printed without the prefix `error: `. */
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
