/**
 * Resolves the images of tags in image streams: when the stream changes, at intervals while an image is missing, and
 * periodically if the tag requests it. Source: openshift/openshift-controller-manager pkg/image/controller (scheduled
 * import).
 */

import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerSpec } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { scheduledTags, tagsToImport } from '../core/index.ts';
import type { ImageStream, TagReference } from '../kinds/imagestreams/types.ts';

/** Retry interval while an image is missing. Hosts report an image after they have pulled it. */
const AGAIN_MS = 15_000;
/** Interval of periodic imports. It equals upstream's `scheduledImageImportMinimumIntervalSeconds`. */
const SCHEDULED_MS = 15 * 60_000;

/**
 * Whether the controller may resolve the tag. A tag that refers to a stream in another namespace is resolved when a
 * user writes it, with the permissions of this user.
 */
const isOpen = ({ from }: TagReference, own: string | undefined): boolean =>
  from?.kind === 'DockerImage' || !from?.namespace || from.namespace === own || from.namespace === 'openshift';

export const imageStreamImportController: ControllerSpec = {
  name: 'imagestream-import',
  reads: [resources.imageStreams],
  writes: [resources.imageStreams],
  uses: ['resolveTag'],
  prepare: (handle) => {
    const streams = handle.informer(resources.imageStreams);
    const resolveTag = handle.use('resolveTag');
    const scheduledMs = handle.options.scheduledImportMs ?? SCHEDULED_MS;
    return (scope) => {
      const retried = new Map<string, number>();
      const queue = scope.queue(async (key) => {
        const stream = streams.get(key);
        if (stream === undefined) return void retried.delete(key);
        const wanted = tagsToImport(stream).filter(({ tag }) => isOpen(tag, stream.metadata?.namespace));
        if (wanted.length === 0) return void retried.delete(key);
        const nowMs = handle.clock.monotonicMs();
        const isDue = nowMs - (retried.get(key) ?? Number.NEGATIVE_INFINITY) >= AGAIN_MS;
        for (const { tag, again } of wanted) if (!again || isDue) await ignoreNotFound(() => resolveTag(stream, tag));
        if (isDue) retried.set(key, nowMs);
        queue.addAfter(key, AGAIN_MS);
      }, 2);
      /** Times at which scheduled tags are due, by key of the stream. */
      const due = new Map<string, number>();
      const scheduled = scope.queue(async (key) => {
        const stream = streams.get(key);
        const tags = stream === undefined ? [] : scheduledTags(stream);
        if (stream === undefined || tags.length === 0) return void due.delete(key);
        const nowMs = handle.clock.monotonicMs();
        const at = due.get(key) ?? nowMs + scheduledMs;
        if (nowMs >= at) for (const tag of tags) await ignoreNotFound(() => resolveTag(stream, tag));
        const next = nowMs >= at ? nowMs + scheduledMs : at;
        due.set(key, next);
        scheduled.addAfter(key, Math.max(1, next - nowMs));
      }, 1);
      const wake = (stream: ImageStream): void => {
        queue.add(objectKey(stream));
        if (scheduledTags(stream).length > 0) scheduled.add(objectKey(stream));
      };
      scope.onChange(streams, { added: wake, updated: wake });
    };
  },
};
