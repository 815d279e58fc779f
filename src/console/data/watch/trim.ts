import type { KubeObject } from '../../../api/meta/object.ts';

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
const LONG_ANNOTATION = 4096;

/**
 * Removes metadata that no list shows, in place. `managedFields` alone is often half of a pod. The editor reads the
 * complete object from the API.
 */
export function trimMetadata<T extends KubeObject>(object: T): T {
  const { metadata } = object;
  if (metadata === undefined) return object;
  delete metadata.managedFields;
  const { annotations } = metadata;
  if (annotations === undefined) return object;
  delete annotations[LAST_APPLIED];
  for (const [name, value] of Object.entries(annotations))
    if (value.length > LONG_ANNOTATION) annotations[name] = `${value.slice(0, LONG_ANNOTATION)}…`;
  return object;
}
