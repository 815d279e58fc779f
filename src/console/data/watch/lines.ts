/** Splits a text stream into lines of limited length. */

/** Handling of a line that exceeds the limit. 'cut' drops the rest of the line; 'fail' throws. */
export type Overflow = 'cut' | 'fail';

export class LineTooLong extends Error {}

export class LineSplitter {
  readonly #limit: number;
  readonly #overflow: Overflow;
  readonly #decoder = new TextDecoder('utf-8');
  #pending: string[] = [];
  #length = 0;
  #dropped = 0;

  /** @param limit Maximum number of characters in a line. */
  constructor(limit: number, overflow: Overflow) {
    this.#limit = limit;
    this.#overflow = overflow;
  }

  /** Decodes a chunk and returns the lines that are complete, without their line ends. */
  push(chunk: Uint8Array): string[] {
    const text = this.#decoder.decode(chunk, { stream: true });
    const lines: string[] = [];
    let start = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      this.#keep(text.slice(start, end));
      lines.push(this.#take());
      start = end + 1;
    }
    if (start < text.length) this.#keep(text.slice(start));
    return lines;
  }

  /** Returns the text after the last line end; undefined if there is none. */
  end(): string | undefined {
    const rest = this.#decoder.decode();
    if (rest !== '') this.#keep(rest);
    return this.#length === 0 && this.#dropped === 0 ? undefined : this.#take();
  }

  #keep(text: string): void {
    const room = this.#limit - this.#length;
    if (text.length > room && this.#overflow === 'fail')
      throw new LineTooLong(`a line of the stream is longer than ${this.#limit} characters`);
    const kept = text.length > room ? text.slice(0, room) : text;
    if (kept !== '') this.#pending.push(kept);
    this.#length += kept.length;
    this.#dropped += text.length - kept.length;
  }

  #take(): string {
    const line = this.#pending.join('');
    const dropped = this.#dropped;
    this.#pending = [];
    this.#length = 0;
    this.#dropped = 0;
    const text = line.endsWith('\r') ? line.slice(0, -1) : line;
    return dropped === 0 ? text : `${text} … [${dropped} characters cut]`;
  }
}
