/** Map in which several owners may set a key. If their values differ, that of the last owner in order applies. */
export class OwnedMap {
  readonly #values = new Map<string, string>();
  /** Owners by key: the only owner, or all owners with their values. */
  readonly #owners = new Map<string, string | Shared>();
  /** Values of the changed keys as of the last `take`. */
  readonly #touched = new Map<string, string | undefined>();

  get values(): ReadonlyMap<string, string> {
    return this.#values;
  }

  /** Sets the owner's value of a key. */
  add(key: string, owner: string, value: string): void {
    const owners = this.#owners.get(key);
    if (owners === undefined || owners === owner) {
      this.#owners.set(key, owner);
      this.#set(key, value);
      return;
    }
    const shared =
      typeof owners === 'string' ? { last: owners, wanted: new Map([[owners, this.#values.get(key) ?? '']]) } : owners;
    this.#owners.set(key, shared);
    shared.wanted.set(owner, value);
    if (owner < shared.last) return;
    shared.last = owner;
    this.#set(key, value);
  }

  remove(key: string, owner: string): void {
    const owners = this.#owners.get(key);
    if (owners === owner) {
      this.#owners.delete(key);
      this.#set(key, undefined);
    } else if (typeof owners === 'object' && owners.wanted.delete(owner) && owners.last === owner) {
      owners.last = lastOf(owners.wanted.keys());
      if (owners.wanted.size === 0) this.#owners.delete(key);
      this.#set(key, owners.wanted.get(owners.last));
    }
  }

  /** Returns the keys that have changed since the last call, with their old and new values. */
  take(): { readonly before: ReadonlyMap<string, string>; readonly after: ReadonlyMap<string, string> } {
    const before = new Map<string, string>();
    const after = new Map<string, string>();
    for (const [key, old] of this.#touched) {
      const now = this.#values.get(key);
      if (old === now) continue;
      if (old !== undefined) before.set(key, old);
      if (now !== undefined) after.set(key, now);
    }
    this.#touched.clear();
    return { before, after };
  }

  #set(key: string, value: string | undefined): void {
    const old = this.#values.get(key);
    if (old === value) return;
    if (!this.#touched.has(key)) this.#touched.set(key, old);
    if (value === undefined) this.#values.delete(key);
    else this.#values.set(key, value);
  }
}

interface Shared {
  last: string;
  readonly wanted: Map<string, string>;
}

function lastOf(names: Iterable<string>): string {
  let last = '';
  for (const name of names) if (name > last) last = name;
  return last;
}
