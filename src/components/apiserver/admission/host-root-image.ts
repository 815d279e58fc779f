/**
 * Rejects pods with the image of the host's root file system. Mirror pods of static pods may name it, which only the
 * node creates; the kubelet does not run mirror pods, so they grant no access. Pods of `oc adm must-gather` select
 * masters by the value that OpenShift 4's labels of roles have; those of OKD 3.11, which nodes have here, differ.
 */
import type { Pod } from 'kubernetes-types/core/v1';
import { HOST_PROGRAMS_IMAGE, hostRootFields, hostRootRefusal } from '../../../api/podspec/host-root-image.ts';
import { nodeNameOf } from '../../../core/authz/index.ts';
import type { AdmissionPlugin } from './admission.ts';
import { forbid, isFor, isMirrorPod } from './subject.ts';

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
    // What is stored already may be written again, so that its status, labels and finalizers can change.
    const before = new Set(request.operation === 'UPDATE' ? hostRootFields((request.old ?? {}) as Pod) : []);
    const added = fields.find((field) => !before.has(field));
    if (added !== undefined) throw forbid(request, hostRootRefusal(added));
  },
};

/** An empty value of a role's label in the node selector becomes a condition that the label is there. */
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
