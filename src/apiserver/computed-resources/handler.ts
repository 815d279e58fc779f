/** Handles creates of computed kinds: reviews, and bindings in their deprecated form. */
import type { Binding } from '../../api/generated/core/v1.ts';
import { invalid } from '../../api/meta/field-error.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { errors } from '../../api/meta/status.ts';
import type { Exchange } from '../http/exchange.ts';
import { negotiateWithoutTable } from '../http/negotiate.ts';
import type { ResourceRequestInfo } from '../http/request-info.ts';
import { admitReview } from '../pipeline/admission.ts';
import { fromStored, type ServedKind, toStored } from '../pipeline/kinds.ts';
import type { RestContext } from '../rest/context.ts';
import { supportsProtobuf } from '../rest/reads/messages.ts';
import { noSuchResource } from '../rest/reads/served-at.ts';
import { success } from '../rest/status-responses.ts';
import { bindPod } from '../rest/subresources/binding.ts';
import { readObject, writeRequest } from '../rest/writes/request-body.ts';
import { mayRequestProjects } from './project-requests.ts';
import { computedHandler } from './reviews.ts';
import { openshiftHandler } from './templates-and-images.ts';

/** Sets the namespace of a review to the namespace of the request. Rejects a review that names another namespace. */
function placeIn(object: KubeObject, namespace: string): void {
  const { namespace: ownNamespace = '' } = object.metadata ?? {};
  if (ownNamespace !== '' && ownNamespace !== namespace)
    throw errors.badRequest('the namespace of the provided object does not match the namespace sent on the request');
  object.metadata = { ...object.metadata, namespace };
}

/**
 * GET of the collection `projectrequests`, by which OpenShift's clients query whether the user may request projects.
 */
export async function checkProjectRequest(context: RestContext, exchange: Exchange): Promise<void> {
  await mayRequestProjects(context, exchange.user);
  exchange.sendObject(200, success());
}

export async function review(
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  negotiateWithoutTable(exchange.request.headers.accept, { protobuf: supportsProtobuf(kind) });
  const request = writeRequest(exchange, kind, info);
  const object = toStored(kind, await readObject(context, exchange, kind, request));
  if (kind.definition.namespaced) placeIn(object, info.namespace);
  kind.definition.setDefaults?.(object);
  const failures = kind.definition.strategy.validate?.(object) ?? [];
  if (failures.length > 0) throw invalid(kind.definition, object.metadata?.name ?? '', failures);
  if (kind.kind === 'Binding') {
    // A create of a Binding object is the deprecated form of pods/NAME/binding.
    const pods = context.kinds.stored('pods', '');
    await bindPod(
      context,
      { ...request, kind: pods, name: object.metadata?.name ?? '', subresource: 'binding' },
      object as Binding,
      { ...request, name: object.metadata?.name ?? '' },
    );
    return exchange.sendObject(201, success());
  }
  const openshift = openshiftHandler(kind);
  const handler = computedHandler(kind);
  if (openshift === undefined && handler === undefined) throw noSuchResource();
  await admitReview(context.admission, request, object);
  if (openshift !== undefined) {
    const answered = await openshift(context, object, request);
    return exchange.sendObject(201, answered);
  }
  if (handler === undefined) throw noSuchResource();
  const answer = await handler(context, object, {
    user: exchange.user,
    namespace: info.namespace,
    dryRun: request.options.dryRun,
    from: exchange.connection.remoteAddress,
  });
  exchange.sendObject(201, fromStored(kind, answer));
}
