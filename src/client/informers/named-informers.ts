/** Informers of single objects, for components that may read only objects to which other objects refer. */
import type { KubeObject, ResourceType } from '../../api/meta/object.ts';
import type { Informer, InformerFactory } from '../types.ts';

export class NamedInformers<T extends KubeObject> {
  readonly #open: InformerFactory['informer'];
  readonly #type: ResourceType<T>;
  readonly #changed: () => void;
  readonly #followed = new Map<string, { readonly informer: Informer<T>; readonly unsubscribe: () => void }>();

  /** `changed`: called for every change of a followed object. */
  constructor(open: InformerFactory['informer'], type: ResourceType<T>, changed: () => void) {
    this.#open = open;
    this.#type = type;
    this.#changed = changed;
  }

  /** Follows exactly the objects in `wanted`, as `NAMESPACE/NAME`. Informers of other objects are stopped. */
  follow(wanted: ReadonlySet<string>): void {
    for (const key of this.#followed.keys()) if (!wanted.has(key)) this.#end(key);
    for (const key of wanted) if (!this.#followed.has(key)) this.#begin(key);
  }

  /** A followed object; undefined if it does not exist or is not synced yet. */
  get(key: string): T | undefined {
    return this.#followed.get(key)?.informer.get(key);
  }

  /** Resolves when all objects that are currently followed are synced. */
  async synced(): Promise<void> {
    await Promise.all([...this.#followed.values()].map(({ informer }) => informer.synced));
  }

  stop(): void {
    this.follow(new Set());
  }

  #begin(key: string): void {
    const [namespace = '', name = ''] = key.split('/');
    const informer = this.#open(this.#type, { namespace, fieldSelector: `metadata.name=${name}` });
    const changed = this.#changed;
    const unsubscribe = informer.onChange({ added: changed, updated: changed, deleted: changed });
    this.#followed.set(key, { informer, unsubscribe });
    informer.start();
  }

  #end(key: string): void {
    const found = this.#followed.get(key);
    this.#followed.delete(key);
    found?.unsubscribe();
    void found?.informer.stop();
  }
}
