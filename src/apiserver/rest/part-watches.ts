/** Watches of objects that are parts of stored objects, as image stream tags are. */
import type { CachedObject } from '../watch-cache/cached-object.ts';
import type { EventType } from '../watch-cache/event-window.ts';

/** Converts an event of a stored object to events of its parts. */
export type Expansion = (object: CachedObject, previous: CachedObject | undefined, type: EventType) => PartEvent[];

export interface PartEvent {
  readonly type: EventType;
  readonly object: CachedObject;
  readonly previous: CachedObject | undefined;
  readonly revision: number;
}
