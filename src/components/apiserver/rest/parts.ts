/** Watches of objects that are parts of stored ones, as tags are of image streams. */
import type { CachedObject } from '../watchcache/cached-object.ts';
import type { EventType } from '../watchcache/event-window.ts';

/** What an event of a stored object is for its parts. */
export type Expansion = (object: CachedObject, previous: CachedObject | undefined, type: EventType) => PartEvent[];

export interface PartEvent {
  readonly type: EventType;
  readonly object: CachedObject;
  readonly previous: CachedObject | undefined;
  readonly revision: number;
}
