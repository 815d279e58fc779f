/**
 * Runs callbacks in order, a few in each turn of the event loop. For expensive work that may arrive in bursts: the TLS
 * handshakes of hundreds of reconnecting clients take a millisecond each and must not delay other connections.
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
