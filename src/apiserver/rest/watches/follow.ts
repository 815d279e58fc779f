/** Subscriptions of the server's own controllers to the watch cache. */
import type { EventBatch } from '../../watch-cache/event-window.ts';
import type { RestContext } from '../context.ts';

/**
 * Subscribes to a kind until the server stops. `all` runs first and after each reload of the cache, because events may
 * have been missed. The callbacks must neither throw nor block.
 */
export function followKind(
  context: Pick<RestContext, 'cache' | 'stopping'>,
  kind: string,
  deliver: (batch: EventBatch) => void,
  all: () => void,
): void {
  const { cache, stopping } = context;
  if (stopping.aborted) return;
  const again = (): void => queueMicrotask(() => followKind(context, kind, deliver, all));
  cache.kind(kind).subscribe({ deliver, reset: again }, undefined, cache.revision);
  all();
}
