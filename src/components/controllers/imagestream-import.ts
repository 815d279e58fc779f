/** Finds the images of an image stream's tags when the stream changes, and again while one is not found. */
import type { ImageStream, TagReference } from '../../api/kinds/imagestreams/types.ts';
import { objectKey } from '../../api/meta/object.ts';
import { resources } from '../../api/resources.ts';
import { tagsToImport } from '../../core/imagestreams/index.ts';
import type { ControllerSpec } from './framework.ts';
import { ignoreNotFound } from './ignore-not-found.ts';

/** Hosts report images after they have got them. */
const AGAIN_MS = 15_000;

/** Streams of other namespaces are read with the permissions of the user, when the tag is written. */
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
      const wake = (stream: ImageStream): void => queue.add(objectKey(stream));
      scope.onChange(streams, { added: wake, updated: wake });
    };
  },
};
