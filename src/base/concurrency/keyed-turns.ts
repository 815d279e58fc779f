/** Serializes asynchronous operations per key, in the order of the calls. Different keys are independent. */
import { ignore } from '../errors.ts';

export class Turns {
  readonly #turns = new Map<string, Promise<unknown>>();

  async inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    const settled = mine.catch(ignore('the caller of the work gets its error'));
    this.#turns.set(key, settled);
    try {
      return await mine;
    } finally {
      if (this.#turns.get(key) === settled) this.#turns.delete(key);
    }
  }
}
