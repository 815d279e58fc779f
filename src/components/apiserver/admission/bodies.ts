/** Admission of requests whose body is not the target object: Binding, Eviction, exec options. */
import type { GroupVersionKind, KubeObject } from '../../../api/meta/object.ts';
import type { RestContext } from '../rest/context.ts';
import type { WriteRequest } from '../rest/write-request.ts';
import type { AdmissionRequest } from './index.ts';

/** Webhooks judge the question that `object` is, and may change it, in place. Throws an ApiError when it is refused. */
export async function admitQuestion(context: RestContext, request: WriteRequest, object: KubeObject): Promise<void> {
  const admission: AdmissionRequest = {
    operation: 'CREATE',
    kind: request.kind,
    subresource: '',
    namespace: request.namespace,
    name: object.metadata?.name ?? '',
    object,
    bodyOnly: true,
    user: request.user,
    dryRun: request.options.dryRun,
    options: request.options,
    warnings: request.warnings,
    annotate: request.annotate,
    deadlineMs: request.deadlineMs,
  };
  await context.admission.mutate(admission);
  await context.admission.validate(admission);
}

/** Webhooks and policies judge `body`, and webhooks may change it, in place. Throws an ApiError when it is refused. */
export async function admitBody(
  context: RestContext,
  request: Omit<WriteRequest, 'options'> & Partial<Pick<WriteRequest, 'options'>>,
  operation: 'CREATE' | 'CONNECT',
  bodyKind: GroupVersionKind,
  body: object,
): Promise<void> {
  const admission: AdmissionRequest = {
    operation,
    kind: request.kind,
    subresource: request.subresource,
    namespace: request.namespace,
    name: request.name,
    body,
    bodyKind,
    bodyOnly: true,
    user: request.user,
    dryRun: request.options?.dryRun ?? false,
    ...(request.options === undefined ? {} : { options: request.options }),
    warnings: request.warnings,
    annotate: request.annotate,
    deadlineMs: request.deadlineMs,
  };
  await context.admission.mutate(admission);
  await context.admission.validate(admission);
}
