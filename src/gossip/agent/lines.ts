/** Splits a stream of bytes into lines of at most `limit` bytes. */
import { CodedError } from '../../base/errors.ts';

export class LineReader {
  readonly #limit: number;
  #pieces: Buffer[] = [];
  #length = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds a chunk and returns the lines that it completes. Throws CodedError 'line-too-long'. */
  push(chunk: Buffer): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.#take(chunk.subarray(from, end));
      lines.push(Buffer.concat(this.#pieces).toString('utf8'));
      this.#pieces = [];
      this.#length = 0;
      from = end + 1;
    }
    if (from < chunk.length) this.#take(chunk.subarray(from));
    return lines;
  }

  #take(piece: Buffer): void {
    this.#length += piece.length;
    if (this.#length > this.#limit) throw new CodedError('line-too-long', `a line is longer than ${this.#limit} bytes`);
    this.#pieces.push(piece);
  }
}

const NEWLINE = 0x0a;
