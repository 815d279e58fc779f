/**
 * Groups calls into frames: however often a callback is requested, it runs once in the next frame. A burst of changes
 * therefore causes one update of the page.
 */
export class FrameBatcher {
  readonly #requestFrame: (run: () => void) => void;
  readonly #pending = new Set<() => void>();
  #isRequested = false;

  constructor(requestFrame: (run: () => void) => void) {
    this.#requestFrame = requestFrame;
  }

  request(callback: () => void): void {
    this.#pending.add(callback);
    if (this.#isRequested) return;
    this.#isRequested = true;
    this.#requestFrame(() => this.#run());
  }

  cancel(callback: () => void): void {
    this.#pending.delete(callback);
  }

  #run(): void {
    this.#isRequested = false;
    const callbacks = [...this.#pending];
    this.#pending.clear();
    for (const callback of callbacks) callback();
  }
}
