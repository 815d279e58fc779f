/** The elements of one nft set: what it should hold, and what differs from what it holds. */
export class ElementSet {
  /** Element → how many owners want it: two pods can report one address while it changes hands. */
  readonly #counts = new Map<string, number>();
  readonly #applied = new Set<string>();
  readonly #touched = new Set<string>();

  add(element: string): void {
    this.#counts.set(element, (this.#counts.get(element) ?? 0) + 1);
    this.#touched.add(element);
  }

  remove(element: string): void {
    const count = (this.#counts.get(element) ?? 0) - 1;
    if (count > 0) this.#counts.set(element, count);
    else this.#counts.delete(element);
    this.#touched.add(element);
  }

  get elements(): readonly string[] {
    return [...this.#counts.keys()];
  }

  /** The changes since the last call, which count as applied. */
  take(): { readonly added: readonly string[]; readonly removed: readonly string[] } {
    const added: string[] = [];
    const removed: string[] = [];
    for (const element of this.#touched) {
      const wanted = this.#counts.has(element);
      if (wanted === this.#applied.has(element)) continue;
      if (wanted) {
        this.#applied.add(element);
        added.push(element);
      } else {
        this.#applied.delete(element);
        removed.push(element);
      }
    }
    this.#touched.clear();
    return { added, removed };
  }

  /** The kernel's set is empty again. */
  reset(): void {
    this.#applied.clear();
    for (const element of this.#counts.keys()) this.#touched.add(element);
  }
}
