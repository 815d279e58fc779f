/**
 * Kinds whose lists and watches contain only the objects that the user may get, such as OpenShift's projects. A change
 * of roles or bindings may add objects to a watch or remove them.
 */
import { errors } from '../../../api/meta/status.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { ServedKind } from '../../pipeline/kinds.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { EventType } from '../../watch-cache/event-window.ts';
import type { KindCache } from '../../watch-cache/kind-cache.ts';
import type { KindSubscriber } from '../../watch-cache/subscribers.ts';
import type { ServerContext } from '../context.ts';
import type { ListOptions } from './list-options.ts';

type ReadableContext = Pick<ServerContext, 'authorization' | 'cache'>;

const RIGHTS = ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'];

/** Predicate for the objects that the user may get. Undefined for kinds without this restriction. */
function readableBy(
  context: ReadableContext,
  kind: ServedKind,
  user: UserInfo,
): ((object: CachedObject) => boolean) | undefined {
  if (kind.alias?.onlyReadable !== true) return undefined;
  const { isOwn } = kind.alias;
  if (isOwn !== undefined) return (object) => isOwn(object.parse(), user);
  const { group, version, plural: resource, definition } = kind;
  return ({ name, namespace }) => {
    const action = { verb: 'get', version, subresource: '', name, namespace: namespace === '' ? name : namespace };
    return (
      context.authorization.allows(user, { ...action, group, resource }) ||
      context.authorization.allows(user, { ...action, group: definition.group, resource: definition.plural })
    );
  };
}

/** Adds the visibility filter to the options of a list or watch. */
export function visibleOptions(
  context: ReadableContext,
  kind: ServedKind,
  { user }: Pick<Exchange, 'user'>,
  options: ListOptions,
): ListOptions {
  const visible = readableBy(context, kind, user);
  return visible === undefined ? options : { ...options, visible };
}

/** Throws 'NotFound' for an object of another user, if objects of the kind are visible to their owner only. */
export function requireOwn(kind: ServedKind, user: UserInfo, object: CachedObject | undefined, name: string): void {
  const isOwn = kind.alias?.isOwn;
  if (isOwn !== undefined && object !== undefined && !isOwn(object.parse(), user)) throw errors.notFound(kind, name);
}

/** Objects that one watch of a restricted kind has sent. Determines the events that a change of permissions causes. */
export class ReadableObjects {
  readonly #context: ReadableContext;
  readonly #cache: KindCache;
  readonly #matches: (object: CachedObject) => boolean;
  readonly #shown = new Set<string>();
  #stop: (() => void) | undefined;

  constructor(context: ReadableContext, cache: KindCache, matches: (object: CachedObject) => boolean) {
    this.#context = context;
    this.#cache = cache;
    this.#matches = matches;
  }

  /** Marks all visible objects as sent, for a watch that continues after a list. */
  noteAll(): void {
    for (const object of this.#cache.list(undefined)) if (this.#matches(object)) this.#shown.add(object.name);
  }

  /** Event type as this watch must send it. Undefined: no event. */
  transition(type: EventType, object: CachedObject): EventType | undefined {
    const before = this.#shown.has(object.name);
    const now = type !== 'DELETED' && this.#matches(object);
    if (now) this.#shown.add(object.name);
    else this.#shown.delete(object.name);
    if (now) return before ? 'MODIFIED' : 'ADDED';
    return before ? 'DELETED' : undefined;
  }

  /** Calls `changed` for objects that become visible or invisible when roles and bindings change. */
  follow(changed: (type: EventType, object: CachedObject) => void): void {
    let waiting = false;
    const look = (): void => {
      waiting = false;
      if (this.#stop === undefined) return;
      for (const object of this.#cache.list(undefined)) {
        const type = this.transition('MODIFIED', object);
        if (type === 'ADDED' || type === 'DELETED') changed(type, object);
      }
    };
    const schedule = (): void => {
      if (waiting) return;
      waiting = true;
      // Runs after the authorizer has processed the same events.
      setImmediate(look);
    };
    const subscriber: KindSubscriber = { deliver: schedule, reset: schedule };
    const { cache } = this.#context;
    const ends = RIGHTS.map((kind) => cache.kind(kind).subscribe(subscriber, undefined, cache.revision));
    this.#stop = () => {
      for (const end of ends) end();
    };
  }

  end(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}
