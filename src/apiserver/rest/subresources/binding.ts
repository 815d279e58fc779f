/** Binds a pod to a node. Source: k8s.io/kubernetes/pkg/registry/core/pod/storage BindingREST. */

import type { Binding, Pod } from '../../../api/generated/core/v1.ts';
import { fieldError, invalid } from '../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { errors } from '../../../api/meta/status.ts';
import { validateAnnotations, validateLabels } from '../../../api/meta/validation.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { admitBody } from '../../pipeline/admission.ts';
import type { WriteRequest } from '../../pipeline/write-request.ts';
import type { WriteContext } from '../context.ts';
import { updateObject } from '../writes/update.ts';

/** Binds a pod to a node. `admissionRequest`: the request that webhooks and policies receive. */
export async function bindPod(
  context: WriteContext,
  request: WriteRequest,
  binding: Binding,
  admissionRequest: WriteRequest = request,
): Promise<void> {
  if (request.name !== '' && binding.metadata?.name !== request.name)
    throw errors.badRequest('name in URL does not match name in Binding object');
  const node = binding.target?.name ?? '';
  const kind = binding.target?.kind ?? '';
  const failures = [];
  if (kind !== '' && kind !== 'Node') {
    failures.push(fieldError.notSupported('target.kind', kind, ['Node', '<empty>']));
  }
  if (node === '') failures.push(fieldError.required('target.name'));
  if (failures.length > 0) throw invalid({ group: '', kind: 'Binding' }, request.name, failures);
  await admitBody(
    context.admission,
    admissionRequest,
    'CREATE',
    { group: '', version: 'v1', kind: 'Binding' },
    binding,
  );
  const wrong = [
    ...validateAnnotations(binding.metadata?.annotations, 'metadata.annotations'),
    ...validateLabels(binding.metadata?.labels, 'metadata.labels'),
  ];
  if (wrong.length > 0) throw invalid({ group: '', kind: 'Binding' }, request.name, wrong);
  await updateObject(context, request, {
    strategy: {},
    next: (current) => bound(current, node, binding, request, context.clock.nowMs()),
  });
}

function bound(current: KubeObject, node: string, binding: Binding, request: WriteRequest, nowMs: number): Pod {
  const pod = current as Pod;
  const conflict = (why: string): never => {
    throw errors.conflict({ group: '', plural: 'pods/binding' }, request.name, why);
  };
  const { uid, resourceVersion } = binding.metadata ?? {};
  if (uid !== undefined && uid !== '' && uid !== pod.metadata?.uid) {
    conflict(`Precondition failed: UID in precondition: ${uid}, UID in object meta: ${pod.metadata?.uid}`);
  }
  if (resourceVersion !== undefined && resourceVersion !== '' && resourceVersion !== pod.metadata?.resourceVersion) {
    conflict('the object has been modified; please apply your changes to the latest version and try again');
  }
  if (pod.metadata?.deletionTimestamp !== undefined) {
    conflict(`pod ${request.name} is being deleted, cannot be assigned to a host`);
  }
  const spec = pod.spec ?? { containers: [] };
  if (spec.nodeName !== undefined && spec.nodeName !== '') {
    conflict(`pod ${request.name} is already assigned to node ${JSON.stringify(spec.nodeName)}`);
  }
  if ((spec.schedulingGates ?? []).length > 0) conflict(`pod ${request.name} has non-empty .spec.schedulingGates`);
  const { annotations, labels } = binding.metadata ?? {};
  const others = (pod.status?.conditions ?? []).filter((each) => each.type !== 'PodScheduled');
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      ...(annotations === undefined ? {} : { annotations: { ...pod.metadata?.annotations, ...annotations } }),
      // Existing labels of the pod take precedence.
      ...(labels === undefined ? {} : { labels: { ...labels, ...pod.metadata?.labels } }),
    },
    spec: { ...spec, nodeName: node },
    status: {
      ...pod.status,
      conditions: [...others, { type: 'PodScheduled', status: 'True', lastTransitionTime: timestamp(nowMs) }],
    },
  };
}
