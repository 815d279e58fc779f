/**
 * The `AdmissionRequest` of admission.k8s.io/v1 for webhooks and expressions. Source:
 * k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go.
 */

import type { GroupVersionKind, JsonObject, JsonValue, KubeObject } from '../../api/meta/object.ts';
import type { AdmissionRequest } from '../pipeline/admission.ts';
import { fromStored, type ServedKind, toStored } from '../pipeline/kinds.ts';
import { encodeObject } from '../storage/encode.ts';
import { CachedObject } from '../watch-cache/cached-object.ts';

const OPTIONS = { CREATE: 'CreateOptions', UPDATE: 'UpdateOptions', DELETE: 'DeleteOptions', CONNECT: '' } as const;

/** Builds the AdmissionRequest. `as`: the version in which the objects are shown. */
export async function describeRequest(request: AdmissionRequest, as: ServedKind, uid: string): Promise<JsonObject> {
  const { kind, user } = request;
  const [object, oldObject] = await shownObjects(request, as);
  const kindOf = (served: ServedKind): JsonObject => gvk(request.bodyKind ?? served);
  const known =
    request.name === '' && request.operation !== 'CREATE' ? (request.old?.metadata?.name ?? '') : request.name;
  const name = request.collective === true ? '' : known;
  // A namespace is shown with its own name as the namespace.
  const isNamespace = kind.definition.group === '' && kind.definition.plural === 'namespaces';
  const namespace = isNamespace ? name : request.namespace;
  const options = optionsOf(request);
  return {
    uid,
    kind: kindOf(as),
    resource: { group: as.group, version: as.version, resource: as.plural },
    ...(request.subresource === '' ? {} : { subResource: request.subresource }),
    requestKind: kindOf(kind),
    requestResource: { group: kind.group, version: kind.version, resource: kind.plural },
    ...(request.subresource === '' ? {} : { requestSubResource: request.subresource }),
    ...(name === '' ? {} : { name }),
    ...(namespace === '' ? {} : { namespace }),
    operation: request.operation,
    userInfo: {
      username: user.name,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      groups: [...user.groups],
      ...(user.extra === undefined
        ? {}
        : { extra: Object.fromEntries(Object.entries(user.extra).map(([key, values]) => [key, [...values]])) }),
    },
    object,
    oldObject,
    dryRun: request.dryRun,
    ...(options === undefined ? {} : { options }),
  };
}

const gvk = ({ group, version, kind }: GroupVersionKind): JsonObject => ({ group, version, kind });

function optionsOf(request: AdmissionRequest): JsonObject | undefined {
  const { options, operation } = request;
  if (options === undefined || operation === 'CONNECT') return undefined;
  const head = {
    kind: OPTIONS[operation],
    apiVersion: 'meta.k8s.io/v1',
    ...(request.dryRun ? { dryRun: ['All'] } : {}),
  };
  if ('fieldManager' in options) {
    return { ...head, fieldManager: options.fieldManager, fieldValidation: options.validation };
  }
  const { gracePeriodSeconds, propagation } = options;
  return {
    ...head,
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(propagation === undefined ? {} : { propagationPolicy: propagation }),
  };
}

async function shownObjects(request: AdmissionRequest, as: ServedKind): Promise<[JsonValue, JsonValue]> {
  if (request.bodyKind !== undefined) return [json(request.body), json(request.oldBody)];
  const show = async (object: KubeObject | undefined): Promise<JsonValue> =>
    object === undefined ? null : json(await convert(object, request.kind, as));
  return [await show(request.object), await show(request.old)];
}

const json = (value: unknown): JsonValue => (value === undefined ? null : (value as JsonValue));

/** Converts a stored object to version `as`. Returns the same object if no conversion is needed. */
async function convert(object: KubeObject, kind: ServedKind, as: ServedKind): Promise<KubeObject> {
  if (as.view === undefined) return as.alias === undefined ? object : fromStored(as, structuredClone(object));
  // An object that is being deleted is still in its storage version.
  const isAs = as === kind && (object.apiVersion === undefined || object.apiVersion === kind.apiVersion);
  return isAs ? object : seenBy(as, kind, object);
}

/** Converts a custom resource from version `from` to version `to`. */
async function seenBy(to: ServedKind, from: ServedKind, object: KubeObject): Promise<KubeObject> {
  const bytes = encodeObject({ apiVersion: object.apiVersion ?? from.apiVersion, kind: from.kind }, object);
  const { namespace = '', name = '', resourceVersion } = object.metadata ?? {};
  const shown = await to.view?.of(new CachedObject(namespace, name, bytes, 0, 0));
  const converted = (shown?.parse() ?? object) as { metadata?: Record<string, unknown> };
  const metadata = converted.metadata ?? {};
  converted.metadata = metadata;
  if (resourceVersion === undefined) delete metadata['resourceVersion'];
  else metadata['resourceVersion'] = resourceVersion;
  return converted as KubeObject;
}

/** Converts an object that a webhook or policy returned to the form in which the pipeline keeps it. */
export async function fromReview(object: KubeObject, kind: ServedKind, as: ServedKind): Promise<KubeObject> {
  if (as.view === undefined) return toStored(as, object);
  return as === kind ? object : seenBy(kind, as, object);
}
