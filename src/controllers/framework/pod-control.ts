/** Creates and deletes pods for a controller and records upstream's events. */
import type { Pod } from '../../api/generated/core/v1.ts';
import { type KubeObject, objectKey } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { messageOf } from '../../base/errors.ts';
import type { EventRecorder, ResourceClient } from '../../client/types.ts';

export interface PodControl {
  create(owner: KubeObject, pod: Pod): Promise<void>;
  /** Resolves with false when the pod no longer exists. In this case no watch event follows. */
  delete(owner: KubeObject, pod: Pod): Promise<boolean>;
}

export function createPodControl(pods: ResourceClient<Pod>, recorder: EventRecorder): PodControl {
  return {
    async create(owner, pod) {
      try {
        const made = await pods.create(pod);
        recorder.event(owner, 'Normal', 'SuccessfulCreate', `Created pod: ${made.metadata?.name ?? ''}`);
      } catch (error) {
        // A terminating namespace rejects every create, so an event for each pod would only be noise.
        if (!isNamespaceTerminating(error)) {
          recorder.event(owner, 'Warning', 'FailedCreate', `Error creating: ${messageOf(error)}`);
        }
        throw error;
      }
    },
    async delete(owner, pod) {
      const name = pod.metadata?.name ?? '';
      const uid = pod.metadata?.uid;
      try {
        await pods.delete(name, pod.metadata?.namespace, uid === undefined ? {} : { preconditions: { uid } });
        recorder.event(owner, 'Normal', 'SuccessfulDelete', `Deleted pod: ${name}`);
        return true;
      } catch (error) {
        if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return false;
        recorder.event(
          owner,
          'Warning',
          'FailedDelete',
          `Error deleting pod ${JSON.stringify(objectKey(pod))}: ${messageOf(error)}`,
        );
        throw error;
      }
    },
  };
}

export function isNamespaceTerminating(error: unknown): boolean {
  return (
    isApiError(error, 'Forbidden') &&
    (error.details?.causes?.some((cause) => cause.reason === 'NamespaceTerminating') === true ||
      error.message.includes('because it is being terminated'))
  );
}
