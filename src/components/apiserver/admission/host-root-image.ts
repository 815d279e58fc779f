/**
 * Rejects pods with the image of the host's root file system. Mirror pods of static pods may name it, which only the
 * node creates; the kubelet does not run mirror pods, so they grant no access.
 */
import type { Pod } from 'kubernetes-types/core/v1';
import { hostRootFields, hostRootRefusal } from '../../../api/podspec/host-root-image.ts';
import { nodeNameOf } from '../../../core/authz/index.ts';
import type { AdmissionPlugin } from './admission.ts';
import { forbid, isFor, isMirrorPod } from './subject.ts';

export const hostRootImage: AdmissionPlugin = {
  name: 'HostRootImage',
  resources: ['pods'],
  validate(request) {
    if (!isFor(request, '', 'pods') || request.object === undefined) return;
    const pod = request.object as Pod;
    const fields = hostRootFields(pod);
    if (fields.length === 0) return;
    if (request.operation === 'CREATE') {
      const node = nodeNameOf(request.user);
      if (isMirrorPod(pod) && node !== undefined && node === pod.spec?.nodeName) return;
    }
    // What is stored already may be written again, so that its status, labels and finalizers can change.
    const before = new Set(request.operation === 'UPDATE' ? hostRootFields((request.old ?? {}) as Pod) : []);
    const added = fields.find((field) => !before.has(field));
    if (added !== undefined) throw forbid(request, hostRootRefusal(added));
  },
};
