/** Optimistic concurrency of writes to existing objects. */
import { errors } from '../../../api/meta/status.ts';
import { conflictMessage, type WriteRequest } from '../../pipeline/write-request.ts';
import type { Place } from '../../storage/object-store.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { ServerContext } from '../context.ts';

/** Attempts before a write fails with a conflict. Upstream retries until the request's deadline. */
const MAX_TRIES = 1000;

/** Result of one attempt. `current`: the object after a conflicting write. Undefined: the object was deleted. */
export type Attempt<T> =
  | { readonly done: true; readonly value: T }
  | { readonly done: false; readonly current: CachedObject | undefined };

/**
 * Runs `attempt` on the cached object and, after a conflict, again on the stored object. An error from the cached
 * object is final only if the store has the same revision. Throws 'NotFound' if there is no object, and 'Conflict'
 * after too many attempts.
 */
export async function retryOnConflict<T>(
  context: Pick<ServerContext, 'objects'>,
  request: WriteRequest,
  place: Place,
  attempt: (current: CachedObject) => Promise<Attempt<T>>,
): Promise<T> {
  let current = request.kind.cache?.get(place.namespace, place.name);
  let certain = false;
  for (let tries = 1; ; tries++) {
    try {
      if (current === undefined) throw errors.notFound(request.kind, request.name);
      const outcome = await attempt(current);
      if (outcome.done) return outcome.value;
      if (tries >= MAX_TRIES) throw errors.conflict(request.kind, request.name, conflictMessage);
      current = outcome.current;
      certain = true;
    } catch (error) {
      if (certain) throw error;
      const stored = await context.objects.readStored(place);
      certain = true;
      if (stored?.revision === current?.revision) throw error;
      current = stored;
    }
  }
}
