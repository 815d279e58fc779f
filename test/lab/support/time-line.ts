/** Prints the progress of a test: milliseconds since the start, and the duration of each step. */
export class TimeLine {
  readonly #began = performance.now();
  readonly #title: string;

  constructor(title: string) {
    this.#title = title;
  }

  note(what: string): void {
    console.log(`${this.#title} ${this.#now()}            ${what}`);
  }

  /** Resolves with the result of `act`. */
  async step<T>(what: string, act: () => Promise<T>): Promise<T> {
    return (await this.timed(what, act)).value;
  }

  async timed<T>(what: string, act: () => Promise<T>): Promise<{ readonly value: T; readonly ms: number }> {
    const began = performance.now();
    let outcome = 'FAILED: ';
    try {
      const value = await act();
      outcome = '';
      return { value, ms: performance.now() - began };
    } finally {
      const took = Math.round(performance.now() - began);
      console.log(`${this.#title} ${this.#now()} ${`+${took}`.padStart(7)} ms ${outcome}${what}`);
    }
  }

  #now(): string {
    return `${Math.round(performance.now() - this.#began)} ms`.padStart(10);
  }
}
