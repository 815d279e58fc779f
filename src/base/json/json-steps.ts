/** Incremental JSON serialization of large values. */
import type { Steps } from '../concurrency/steps.ts';
import { isHeavy, Pieces, ValueWeights } from './value-weight.ts';

/** Serializes plain data as `JSON.stringify` does, in steps. */
export function* jsonSteps(value: object): Steps<string> {
  const writer = new Writer();
  yield* writer.write(value);
  return writer.parts.join('');
}

class Writer {
  readonly parts: string[] = [];
  readonly #weigher = new ValueWeights();
  readonly #pieces = new Pieces();

  *write(value: object): Steps<void> {
    if (isHeavy(this.#weigher.weight(value))) yield* this.#container(value);
    else this.parts.push(JSON.stringify(value));
  }

  #container(value: object): Steps<void> {
    return Array.isArray(value) ? this.#array(value) : this.#object(value as Record<string, unknown>);
  }

  *#array(items: readonly unknown[]): Steps<void> {
    const { parts } = this;
    let separator = '[';
    /** Index of the first value that is not serialized yet. Small values are serialized together. */
    let first = 0;
    const flush = (end: number): void => {
      if (end === first) return;
      parts.push(separator, JSON.stringify(items.slice(first, end)).slice(1, -1));
      separator = ',';
    };
    for (const [index, item] of items.entries()) {
      const weight = this.#weigher.weight(item);
      if (isHeavy(weight)) {
        flush(index);
        parts.push(separator);
        separator = ',';
        yield* this.#container(item as object);
        first = index + 1;
      } else if (this.#pieces.isOver(weight)) {
        flush(index + 1);
        first = index + 1;
        yield;
      }
    }
    flush(items.length);
    parts.push(items.length === 0 ? '[]' : ']');
  }

  *#object(object: Record<string, unknown>): Steps<void> {
    const { parts } = this;
    let separator = '{';
    for (const name of this.#weigher.names(object)) {
      const value = object[name];
      if (value === undefined) continue;
      parts.push(separator, JSON.stringify(name), ':');
      separator = ',';
      const weight = this.#weigher.weight(value);
      if (isHeavy(weight)) yield* this.#container(value as object);
      else parts.push(JSON.stringify(value));
      if (this.#pieces.isOver(weight)) yield;
    }
    parts.push(separator === '{' ? '{}' : '}');
  }
}
