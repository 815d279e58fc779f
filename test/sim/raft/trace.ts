/** Hash of all events of a run (FNV-1a in two lanes). The same seed must give the same hash. */
export class Trace {
  #a = 0x811c9dc5;
  #b = 0x01000193;
  #lines: string[] | undefined;
  /** Occurrences of rare events. A simulation that never reaches them proves nothing about them. */
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

  /** Adds a line to the printed trace without changing the hash. */
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
