/** Recursive read-only mounts (KEP-3857). Source: pkg/kubelet resolveRecursiveReadOnly. */
import type { VolumeMount } from '../../../api/generated/core/v1.ts';

/** Whether the mount is made recursively read-only. Throws an Error if this is required but not supported. */
export function isRecursivelyReadOnly(mount: VolumeMount, supported: boolean): boolean {
  const { name, recursiveReadOnly: mode = 'Disabled', mountPropagation = 'None' } = mount;
  if (mode === 'Disabled' || mode === '') return false;
  const requested = `volume ${JSON.stringify(name)} requested recursive read-only mode, but it is not`;
  if (mount.readOnly !== true) throw new Error(`${requested} read-only`);
  if (mountPropagation !== 'None') {
    throw new Error(`${requested} compatible with propagation ${JSON.stringify(mountPropagation)}`);
  }
  if (mode === 'Enabled' && !supported) throw new Error(`${requested} supported by the runtime`);
  return supported;
}
