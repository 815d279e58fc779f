/** The informer contract over plain maps, for scenarios of one process. */
import type { KubeObject, ResourceType } from '../../src/api/meta/object.ts';
import { objectKey } from '../../src/api/meta/object.ts';
import type { ChangeHandler, Informer, InformerFactory, InformerOptions } from '../../src/client/types.ts';

export interface LocalInformers {
  readonly factory: InformerFactory;
  /** Adds or replaces an object of the kind with this plural name. */
  set<T extends KubeObject>(plural: string, object: T): void;
  get(plural: string, key: string): KubeObject | undefined;
  delete(plural: string, key: string): void;
}

class Kind {
  readonly objects = new Map<string, KubeObject>();
  readonly handlers = new Set<ChangeHandler<KubeObject>>();
}

/** Creates informers that are synced when `synced` resolves. */
export function localInformers(synced: Promise<void> = Promise.resolve()): LocalInformers {
  const kinds = new Map<string, Kind>();
  const kindOf = (plural: string): Kind => {
    const kind = kinds.get(plural) ?? new Kind();
    kinds.set(plural, kind);
    return kind;
  };
  return {
    set(plural, object) {
      const { objects, handlers } = kindOf(plural);
      const old = objects.get(objectKey(object));
      objects.set(objectKey(object), object);
      for (const handler of handlers) {
        if (old === undefined) handler.added?.(object);
        else handler.updated?.(object, old);
      }
    },
    get: (plural, key) => kindOf(plural).objects.get(key),
    delete(plural, key) {
      const { objects, handlers } = kindOf(plural);
      const old = objects.get(key);
      objects.delete(key);
      if (old !== undefined) for (const handler of handlers) handler.deleted?.(old);
    },
    factory: {
      informer<T extends KubeObject>(type: ResourceType<T>, options: InformerOptions = {}): Informer<T> {
        const { objects, handlers } = kindOf(type.plural);
        const reduced = (object: KubeObject): T => (options.reduce?.(object) ?? object) as T;
        return {
          type,
          start: () => {},
          synced,
          hasSynced: true,
          listed: synced,
          hasListed: true,
          get: (key) => objects.get(key) as T | undefined,
          list: () => [...objects.values()].map(reduced),
          byIndex: () => [],
          addIndex: () => {},
          onChange({ added, updated, deleted }) {
            const handler: ChangeHandler<KubeObject> = {
              added: (object) => added?.(reduced(object)),
              updated: (object, old) => updated?.(reduced(object), reduced(old)),
              deleted: (object) => deleted?.(reduced(object)),
            };
            for (const object of objects.values()) handler.added?.(object);
            handlers.add(handler);
            return () => handlers.delete(handler);
          },
          stop: async () => {},
        };
      },
      startAndSync: async () => {},
      stop: async () => {},
    },
  };
}
