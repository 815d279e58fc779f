import { CodedError } from '../base/errors.ts';

/** Maximum length of a line, which is one event of a watch. */
const MAX_LINE_BYTES = 64 << 20;
const NEWLINE = 0x0a;

/**
 * Splits a stream of bytes into lines. It searches bytes instead of characters, so a UTF-8 sequence may continue in the
 * next chunk. Throws CodedError 'line-too-long'.
 */
export class LineDecoder {
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;

  /** Adds a chunk. Returns the lines that it completes, without the newline. Empty lines are dropped. */
  push(chunk: Uint8Array): string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const line = this.#take(chunk.subarray(start, end));
      if (line !== '') lines.push(line);
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
    return lines;
  }

  /** Returns the text after the last newline. */
  end(): string {
    return this.#take(new Uint8Array(0));
  }

  #keep(rest: Uint8Array): void {
    this.#pendingBytes += rest.length;
    if (this.#pendingBytes > MAX_LINE_BYTES) {
      throw new CodedError('line-too-long', `a line of the stream is longer than ${MAX_LINE_BYTES} bytes`);
    }
    this.#pending.push(rest);
  }

  #take(last: Uint8Array): string {
    if (this.#pending.length === 0) return text(last);
    const whole = Buffer.concat([...this.#pending, last]);
    this.#pending = [];
    this.#pendingBytes = 0;
    return text(whole);
  }
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8').trim();
}
