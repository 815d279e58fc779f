/** Counts the watches that a write must be sent to. Source: k8s.io/apiserver/pkg/util/flowcontrol/watch_tracker.go. */
import { parseFieldSelector, requiredFieldValue } from '../../base/selector.ts';
import type { ResourceRequestInfo } from '../http/request-info.ts';

/** Numbers of watches of one kind: of all objects, per namespace, per object. */
interface Watched {
  all: number;
  readonly namespaces: Map<string, number>;
  readonly objects: Map<string, number>;
}

export class WatchTracker {
  readonly #kinds = new Map<string, Watched>();

  /** Counts a watch and returns the function that removes it. */
  register(info: ResourceRequestInfo): () => void {
    // Watches of the pods of one node are not counted, because few writes concern such a watch.
    if (info.plural === 'pods' && info.group === '' && isOfOneNode(info)) return () => {};
    const key = `${info.group}/${info.plural}`;
    let watched = this.#kinds.get(key);
    if (watched === undefined) {
      watched = { all: 0, namespaces: new Map(), objects: new Map() };
      this.#kinds.set(key, watched);
    }
    const { namespaces, objects } = watched;
    const of = watched;
    if (info.name !== '') return counted(objects, `${info.namespace}/${info.name}`);
    if (info.namespace !== '') return counted(namespaces, info.namespace);
    of.all += 1;
    return () => {
      of.all -= 1;
    };
  }

  interested(info: ResourceRequestInfo): number {
    const watched = this.#kinds.get(`${info.group}/${info.plural}`);
    if (watched === undefined) return 0;
    let count = watched.all;
    if (info.namespace !== '') count += watched.namespaces.get(info.namespace) ?? 0;
    if (info.name !== '') count += watched.objects.get(`${info.namespace}/${info.name}`) ?? 0;
    return count;
  }
}

function counted(counts: Map<string, number>, key: string): () => void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
  return () => {
    const left = (counts.get(key) ?? 1) - 1;
    if (left === 0) counts.delete(key);
    else counts.set(key, left);
  };
}

function isOfOneNode({ query }: ResourceRequestInfo): boolean {
  const selector = query.get('fieldSelector');
  if (selector?.includes('spec.nodeName') !== true) return false;
  try {
    return requiredFieldValue(parseFieldSelector(selector), 'spec.nodeName') !== undefined;
  } catch {
    return false;
  }
}
