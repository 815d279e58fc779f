/**
 * Limits something that clients or tenants hold, in total and per holder. A holder is limited only when half of the
 * total is in use, so that all clients behind one load balancer can use much of an idle router.
 */
export class Shares {
  readonly #max: number;
  readonly #held = new Map<string, number>();
  #size = 0;
  refused = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Returns false if a limit is reached. Otherwise `release` must be called once. */
  acquire(holder: string): boolean {
    const count = this.#held.get(holder) ?? 0;
    const isCrowded = this.#size >= this.#max / 2;
    if (this.#size >= this.#max || (isCrowded && count >= this.#max / 4)) {
      this.refused++;
      return false;
    }
    this.#held.set(holder, count + 1);
    this.#size++;
    return true;
  }

  release(holder: string): void {
    const left = (this.#held.get(holder) ?? 1) - 1;
    if (left > 0) this.#held.set(holder, left);
    else this.#held.delete(holder);
    this.#size--;
  }
}
