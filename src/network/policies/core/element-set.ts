/** Elements of one nft set: the desired state, and its difference from the applied state. */
export class ElementSet {
  /** Number of owners by element. Two pods can report the same address while it is being reassigned. */
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

  /** Returns the changes since the last call. The caller must apply them: they are recorded as applied. */
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

  /** Records that the kernel's set is empty. */
  reset(): void {
    this.#applied.clear();
    for (const element of this.#counts.keys()) this.#touched.add(element);
  }
}
