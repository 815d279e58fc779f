import type { Node } from '../../api/generated/core/v1.ts';
import type { Informer } from '../types.ts';

const MASTER_LABEL = 'node-role.kubernetes.io/master';

/** Determines whether other hosts compete for the same lease. With a single master, there is only one candidate. */
export class Competition {
  readonly #masters = new Set<string>();
  readonly #listeners = new Set<() => void>();
  #alone = false;

  /** Whether exactly one master exists. False while the number is unknown. */
  get alone(): boolean {
    return this.#alone;
  }

  /** Counts the masters among `nodes` until the returned function is called. After that, the number is unknown. */
  follow(nodes: Informer<Node>): () => void {
    const count = (): void => this.#become(nodes.hasListed && this.#masters.size === 1);
    const seen = ({ metadata }: Node): void => {
      const isMaster = metadata?.labels?.[MASTER_LABEL] !== undefined;
      if (isMaster) this.#masters.add(metadata?.name ?? '');
      else this.#masters.delete(metadata?.name ?? '');
      count();
    };
    const gone = ({ metadata }: Node): void => {
      this.#masters.delete(metadata?.name ?? '');
      count();
    };
    const unsubscribe = nodes.onChange({ added: seen, updated: seen, deleted: gone });
    return () => {
      unsubscribe();
      this.#masters.clear();
      this.#become(false);
    };
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #become(alone: boolean): void {
    if (alone === this.#alone) return;
    this.#alone = alone;
    for (const listener of this.#listeners) listener();
  }
}
