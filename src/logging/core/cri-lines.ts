/**
 * Incremental parser for container logs in the CRI format, `<RFC 3339 nano> <stdout|stderr> <P|F>[:tags] <text>`.
 * Partial entries (P) of a line are joined up to a limit; a longer line becomes several records. Source:
 * k8s.io/cri-api, pkg/kubelet/kuberuntime/logs.
 */

export interface Line {
  readonly time: string;
  readonly stream: 'stdout' | 'stderr' | '';
  readonly text: string;
}

interface Pending {
  readonly time: string;
  readonly parts: Uint8Array[];
  length: number;
  /** Position of the first entry of the line in the file. */
  readonly from: number;
}

/** Maximum size of the text of a record, in bytes. */
export const MAX_TEXT_BYTES = 64 * 1024;
/**
 * Maximum size of an entry. Runtimes write at most 16 KiB of text per entry, so a longer entry is not in this format.
 */
const MAX_ENTRY_BYTES = 32 * 1024;
const NEWLINE = 0x0a;
const ENTRY =
  /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([PF])(?::[^ ]*)?(?: |$)/;
/** Maximum size of the part of an entry before its text. */
const MAX_HEAD_BYTES = 128;

export class CriLines {
  readonly #decoder = new TextDecoder();
  /** A line over the limit may be divided within a character, so its records share the state of a decoder. */
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  readonly #pending = new Map<'stdout' | 'stderr', Pending>();
  #rest: Uint8Array = new Uint8Array();
  /** Position of the first byte of `#rest` in the file. */
  #at: number;

  constructor(position: number) {
    this.#at = position;
  }

  /** Position from which a new parser can continue without losing text. */
  get safePosition(): number {
    return Math.min(this.#at, ...[...this.#pending.values()].map(({ from }) => from));
  }

  /** Returns the lines that `bytes` complete. `nowMs` is used as the time of text that is not in the CRI format. */
  push(bytes: Uint8Array, nowMs: number): Line[] {
    const lines: Line[] = [];
    let data = this.#rest.length === 0 ? bytes : concatenate([this.#rest, bytes]);
    for (;;) {
      const newline = data.indexOf(NEWLINE);
      if (newline < 0 && data.length <= MAX_ENTRY_BYTES) break;
      const end = newline < 0 ? MAX_ENTRY_BYTES : Math.min(newline, MAX_ENTRY_BYTES);
      const skipped = end === newline ? 1 : 0;
      this.#entry(data.subarray(0, end), lines, nowMs);
      this.#at += end + skipped;
      data = data.subarray(end + skipped);
    }
    // Copy the rest, because the caller reuses its buffer. `slice` of a Node.js Buffer would not copy it.
    this.#rest = new Uint8Array(data);
    return lines;
  }

  /** Returns the lines whose end is missing. Called at the end of a file that is no longer written. */
  finish(nowMs: number): Line[] {
    const lines: Line[] = [];
    if (this.#rest.length > 0) this.#entry(this.#rest, lines, nowMs);
    this.#at += this.#rest.length;
    this.#rest = new Uint8Array();
    for (const [stream, pending] of this.#pending) lines.push(this.#joined(stream, pending, { continues: false }));
    this.#pending.clear();
    return lines;
  }

  #entry(entry: Uint8Array, lines: Line[], nowMs: number): void {
    const head = ENTRY.exec(latin1(entry.subarray(0, MAX_HEAD_BYTES)));
    if (head === null) {
      const text = this.#decoder.decode(entry);
      if (text !== '') lines.push({ time: new Date(nowMs).toISOString(), stream: '', text });
      return;
    }
    const [whole, time = '', name, tag] = head;
    const stream = name === 'stderr' ? 'stderr' : 'stdout';
    const pending = this.#pending.get(stream) ?? { time, parts: [], length: 0, from: this.#at };
    const text = new Uint8Array(entry.subarray(whole.length));
    pending.parts.push(text);
    pending.length += text.length;
    if (tag === 'P' && pending.length < MAX_TEXT_BYTES) {
      this.#pending.set(stream, pending);
      return;
    }
    this.#pending.delete(stream);
    lines.push(this.#joined(stream, pending, { continues: tag === 'P' }));
  }

  #joined(stream: 'stdout' | 'stderr', { time, parts }: Pending, { continues }: { readonly continues: boolean }): Line {
    return { time, stream, text: this.#decoders[stream].decode(concatenate(parts), { stream: continues }) };
  }
}

function concatenate(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}
