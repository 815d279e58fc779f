/** Parts of the server that act on what is stored, without a watch of their own. */
import type { EventBatch } from '../watchcache/event-window.ts';
import type { RestContext } from './context.ts';

/**
 * Follows a kind from now on, until the server stops. `all` comes at first and whenever the cache was loaded anew: anything may have
 * happened then. Neither may throw or wait.
 */
export function follow(
  context: Pick<RestContext, 'cache' | 'stopping'>,
  kind: string,
  deliver: (batch: EventBatch) => void,
  all: () => void,
): void {
  const { cache, stopping } = context;
  if (stopping.aborted) return;
  const again = (): void => queueMicrotask(() => follow(context, kind, deliver, all));
  cache.kind(kind).subscribe({ deliver, reset: again }, undefined, cache.revision);
  all();
}
