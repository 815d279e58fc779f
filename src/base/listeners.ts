/**
 * Listeners of an event. The source of the event can be created before its listeners, so it needs no reference to them.
 */
export class Listeners<T> {
  readonly #listeners: Array<(value: T) => void> = [];

  add(listener: (value: T) => void): void {
    this.#listeners.push(listener);
  }

  readonly emit = (value: T): void => {
    for (const listener of this.#listeners) listener(value);
  };
}
