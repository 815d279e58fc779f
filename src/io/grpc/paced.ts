/**
 * Does what it is given in order, a few in each turn of the event loop. For what is dear and may come in a rush: hundreds of clients that come back at
 * once need a millisecond each for their handshakes, and nobody else is to wait for all of them.
 */
export class Paced {
  readonly #perTurn: number;
  #waiting: Array<() => void> = [];

  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  run(work: () => void): void {
    this.#waiting.push(work);
    if (this.#waiting.length === 1) setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    const now = this.#waiting.splice(0, this.#perTurn);
    if (this.#waiting.length > 0) setImmediate(this.#turn);
    for (const work of now) work();
  };
}
