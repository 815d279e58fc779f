/** Converts events of image streams to events of their tags, for watches of `imagestreamtags` and `imagetags`. */

import type { KubeObject } from '../../../api/meta/object.ts';
import { tagNames } from '../../../openshift/image-streams/core/index.ts';
import type { ImageStream } from '../../../openshift/image-streams/kinds/imagestreams/types.ts';
import type { Expansion, PartEvent } from '../../rest/part-watches.ts';
import { CachedObject } from '../../watch-cache/cached-object.ts';
import type { TagView } from './views.ts';

/** Converts an event of an image stream to events of its tags. Unchanged tags cause no event. */
export function tagEvents(view: TagView): Expansion {
  return (object, previous, type) => {
    const { revision } = object;
    const after = type === 'DELETED' ? undefined : object.parse<ImageStream>();
    const before = type === 'DELETED' ? (previous ?? object).parse<ImageStream>() : previous?.parse<ImageStream>();
    const names = new Set([before, after].flatMap((stream) => (stream === undefined ? [] : tagNames(stream))));
    return [...names].sort().flatMap((tag): PartEvent[] => {
      const [old, now] = [before, after].map((stream) => {
        const shown = stream === undefined ? undefined : view(stream, tag);
        return shown === undefined ? undefined : partOf(shown, revision);
      });
      if (now === undefined)
        return old === undefined ? [] : [{ type: 'DELETED', object: old, previous: old, revision }];
      if (old === undefined) return [{ type: 'ADDED', object: now, previous: undefined, revision }];
      return old.bytes.equals(now.bytes) ? [] : [{ type: 'MODIFIED', object: now, previous: old, revision }];
    });
  };
}

/**
 * A tag as an object. The states before and after an event get the same revision, so that unchanged tags have equal
 * bytes.
 */
function partOf(shown: KubeObject, revision: number): CachedObject {
  const { resourceVersion: _r, ...metadata } = shown.metadata ?? {};
  const { namespace = '', name = '' } = metadata;
  const object = { ...shown, metadata: { resourceVersion: String(revision), ...metadata } };
  return new CachedObject(namespace, name, Buffer.from(JSON.stringify(object)), revision, revision);
}
