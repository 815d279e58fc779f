import { CodedError } from '../base/errors.ts';

/** One event of a watch carries one object; a server that sends more than this without a newline is broken. */
const MAX_LINE_BYTES = 64 << 20;
const NEWLINE = 0x0a;

/**
 * Cuts a stream of bytes into lines. Works on bytes, so that a UTF-8 sequence split between two chunks stays whole.
 * Throws CodedError 'line-too-long'.
 */
export class LineDecoder {
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;

  /** The lines completed by `chunk`, without their newline; empty lines are dropped. */
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

  /** What came after the last newline. */
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
