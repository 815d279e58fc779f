/**
 * Updates workloads whose annotation follows tags of image streams. The plan is made in openshift/image-streams/core.
 */

import { type KubeObject, objectKey, type ResourceType } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import type {
  ControllerHandle,
  ControllerRun,
  ControllerSpec,
  RunScope,
} from '../../../controllers/framework/framework.ts';
import { latestEvent, planTriggers, splitTagName, triggersOf } from '../core/index.ts';
import type { ImageStream } from '../kinds/imagestreams/types.ts';

const workloads = [resources.deployments, resources.statefulSets, resources.daemonSets, resources.cronJobs] as const;

export const imageTriggerController: ControllerSpec = {
  name: 'image-trigger',
  reads: [resources.imageStreams, ...workloads],
  writes: [...workloads],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const streams = handle.informer(resources.imageStreams);
  const pullSpec = (namespace: string, name: string): string | undefined => {
    const parts = splitTagName(name);
    if (parts === undefined) return undefined;
    return latestEvent(streams.get(`${namespace}/${parts.stream}`), parts.tag)?.dockerImageReference;
  };
  const follow = <T extends KubeObject>(type: ResourceType<T>) => {
    const objects = handle.informer(type);
    const client = handle.writer(type);
    return (scope: RunScope): void => {
      const queue = scope.queue(async (key) => {
        const object = objects.get(key);
        const next = object === undefined ? undefined : planTriggers(object, pullSpec);
        if (next !== undefined) await client.update(next);
      }, 1);
      const wake = (object: T): void => {
        if (triggersOf(object).length > 0) queue.add(objectKey(object));
      };
      scope.onChange(objects, { added: wake, updated: wake });
      const changed = (stream: ImageStream): void => {
        const { name = '', namespace = '' } = stream.metadata ?? {};
        for (const object of objects.list()) {
          const isMeant = triggersOf(object).some(
            (each) =>
              splitTagName(each.name)?.stream === name && (each.namespace ?? object.metadata?.namespace) === namespace,
          );
          if (isMeant) queue.add(objectKey(object));
        }
      };
      scope.onChange(streams, { added: changed, updated: changed });
    };
  };
  const starts = [
    follow(resources.deployments),
    follow(resources.statefulSets),
    follow(resources.daemonSets),
    follow(resources.cronJobs),
  ];
  return (scope) => {
    for (const start of starts) start(scope);
  };
}
