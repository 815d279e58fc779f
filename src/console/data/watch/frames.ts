/**
 * Groups calls into frames. A callback runs once in the next frame, however often it is requested, so a burst of
 * changes causes one update of the page.
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
