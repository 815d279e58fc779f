/**
 * Rejects pods that use the image of the host's root file system. Mirror pods may name the image: only the node can
 * create mirror pods, and the kubelet does not run them, so they grant no access. The plug-in also adapts the node
 * selector of pods of `oc adm must-gather`. These pods select masters by the label value of OpenShift 4, but nodes here
 * have the label value of OKD 3.11.
 */
import type { Pod } from '../../../api/generated/core/v1.ts';
import { HOST_PROGRAMS_IMAGE, hostRootFields, hostRootRefusal } from '../../../api/podspec/host-root-image.ts';
import { nodeNameOf } from '../../core/authorization/index.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, isFor, isMirrorPod } from '../subject.ts';

const ROLE = 'node-role.kubernetes.io/';

export const hostRootImage: AdmissionPlugin = {
  name: 'HostRootImage',
  resources: ['pods'],
  mutate(request) {
    if (!isFor(request, '', 'pods') || request.operation !== 'CREATE' || request.object === undefined) return;
    selectRoles(request.object as Pod);
  },
  validate(request) {
    if (!isFor(request, '', 'pods') || request.object === undefined) return;
    const pod = request.object as Pod;
    const fields = hostRootFields(pod);
    if (fields.length === 0) return;
    if (request.operation === 'CREATE') {
      const node = nodeNameOf(request.user);
      if (isMirrorPod(pod) && node !== undefined && node === pod.spec?.nodeName) return;
    }
    // Fields that are already stored are accepted, so that status, labels and finalizers of the pod can still be
    // updated.
    const before = new Set(request.operation === 'UPDATE' ? hostRootFields((request.old ?? {}) as Pod) : []);
    const added = fields.find((field) => !before.has(field));
    if (added !== undefined) throw forbid(request, hostRootRefusal(added));
  },
};

/**
 * Replaces each role label with an empty value in the node selector by a node affinity that requires only the label.
 */
function selectRoles({ spec }: Pod): void {
  const selector = spec?.nodeSelector;
  if (selector === undefined || !spec?.containers.every(({ image }) => image === HOST_PROGRAMS_IMAGE)) return;
  const roles = Object.keys(selector).filter((key) => key.startsWith(ROLE) && selector[key] === '');
  if (roles.length === 0 || spec.affinity !== undefined) return;
  for (const role of roles) delete selector[role];
  const matchExpressions = roles.map((key) => ({ key, operator: 'Exists' }));
  spec.affinity = {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] } },
  };
}
