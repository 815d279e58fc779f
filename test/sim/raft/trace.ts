/** Everything that happens, in one number (FNV-1a in two lanes): the same seed must give the same one. */
export class Trace {
  #a = 0x811c9dc5;
  #b = 0x01000193;
  #lines: string[] | undefined;
  /** How often what is rare has happened: a simulation that never gets there shows nothing. */
  readonly seen = new Map<string, number>();

  constructor(keep: boolean) {
    if (keep) this.#lines = [];
  }

  add(line: string): void {
    for (let i = 0; i < line.length; i++) {
      this.#a = Math.imul(this.#a ^ line.charCodeAt(i), 0x01000193);
      this.#b = Math.imul(this.#b ^ this.#a, 0x85ebca6b);
    }
    this.#lines?.push(line);
  }

  /** For the reader only. */
  comment(line: string): void {
    this.#lines?.push(line);
  }

  count(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }

  get lines(): readonly string[] {
    return this.#lines ?? [];
  }

  hash(): string {
    return [this.#a, this.#b].map((lane) => (lane >>> 0).toString(16).padStart(8, '0')).join('');
  }
}
