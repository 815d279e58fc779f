/** Rejects mirror pods with a service account and changes of the mirror annotation. */
import type { Pod } from '../../../api/generated/core/v1.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, isFor, isMirrorPod, MIRROR_ANNOTATION } from '../subject.ts';

export const mirrorPods: AdmissionPlugin = {
  name: 'MirrorPods',
  resources: ['pods'],
  validate(request) {
    if (!isFor(request, '', 'pods') || request.object === undefined) return;
    const pod = request.object as Pod;
    if (request.operation === 'CREATE' && isMirrorPod(pod)) {
      if ((pod.spec?.serviceAccountName ?? '') !== '')
        throw forbid(request, 'a mirror pod may not reference service accounts');
      if ((pod.spec?.nodeName ?? '') === '') throw forbid(request, 'a mirror pod must be on a node');
    }
    if (request.operation === 'UPDATE') {
      const now = pod.metadata?.annotations?.[MIRROR_ANNOTATION];
      if (now !== request.old?.metadata?.annotations?.[MIRROR_ANNOTATION]) {
        throw forbid(request, `annotation ${MIRROR_ANNOTATION} may not be added, changed or removed`);
      }
    }
  },
};
