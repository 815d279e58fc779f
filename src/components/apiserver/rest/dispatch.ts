/** Which handler answers a request for a resource. */

import type { TokenRequest } from 'kubernetes-types/authentication/v1';
import type { Scale } from 'kubernetes-types/autoscaling/v1';
import type { Binding } from 'kubernetes-types/core/v1';
import { fieldError, invalid } from '../../../api/meta/field-error.ts';
import type { JsonObject, JsonValue, KubeList, KubeObject } from '../../../api/meta/object.ts';
import { ApiError, errors } from '../../../api/meta/status.ts';
import type { ScaleMapping } from '../../../api/registry/definition.ts';
import { schemaOf } from '../../../api/schema/index.ts';
import { clone } from '../../../core/patch/document.ts';
import { admitBody, admitQuestion } from '../admission/bodies.ts';
import { readBody } from '../http/body.ts';
import { bodyFormat, decodeBody, duplicatesOf, requireKind } from '../http/decode.ts';
import type { Exchange } from '../http/exchange.ts';
import { strictErrors } from '../http/json-scan.ts';
import { negotiate } from '../http/negotiate.ts';
import type { ResourceRequestInfo } from '../http/request-info.ts';
import { stream } from '../streaming/index.ts';
import { bindPod } from '../subresources/binding.ts';
import { evictPod } from '../subresources/eviction.ts';
import { scaleKind } from '../subresources/scale.ts';
import { strategyAt } from '../subresources/strategies.ts';
import { createToken } from '../subresources/token-request.ts';
import { virtualHandler } from '../virtual/reviews.ts';
import { deletedStatus, success } from './answer.ts';
import { applyObject, configurationOf } from './apply.ts';
import type { RestContext } from './context.ts';
import { createObject } from './create.ts';
import { deleteObject } from './delete.ts';
import { type DeleteOptions, parseDeleteOptions } from './delete-options.ts';
import { get, sendObject } from './get.ts';
import { deprecationWarning, fromStored, type ServedKind, toStored } from './kinds.ts';
import { list } from './list.ts';
import { listItem } from './list-items.ts';
import { speaksProtobuf } from './messages.ts';
import { invalidOptions, parseListOptions, parseWriteOptions } from './options.ts';
import { checkName, decodePatch, patchForm, patchObject } from './patch.ts';
import { getScale, patchScale, updateScale } from './scale.ts';
import { noSuchResource, servedAt } from './served-at.ts';
import { takeSnapshot } from './snapshot.ts';
import { giveTurn, isLarge } from './turns.ts';
import { updateObject } from './update.ts';
import { shown } from './view.ts';
import { watch } from './watch.ts';
import { type DecodedKind, decodeSent, methodNotAllowed, strictly, type WriteRequest } from './write-request.ts';

const MAX_BODY = 3 * 1024 * 1024;
const ORPHANED_PODS =
  'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning';
/** Deletes of a collection under way at once. */
const DELETE_WORKERS = 8;

/** Answers at once where it can; else the promise settles when the answer is complete. */
export function dispatch(
  context: RestContext,
  exchange: Exchange,
  info: ResourceRequestInfo,
): Promise<void> | undefined {
  const kind = servedAt(context.kinds, info);
  const { subresource, verb } = info;
  const { custom, deprecation } = kind.definition;
  const warning = custom?.deprecation ?? (kind.alias === undefined ? deprecation : undefined);
  if (warning !== undefined) exchange.warnings.push(warning);
  if ((kind.alias ?? kind.definition).deprecated !== undefined) exchange.warnings.push(deprecationWarning(kind));
  if (subresource !== '') return dispatchSubresource(context, exchange, kind, info);
  if (kind.definition.virtual === true) {
    // They are asked for only: there is no path to one that has a name.
    if (info.name !== '') throw noSuchResource();
    if (verb !== 'create') throw methodNotAllowed();
    return review(context, exchange, kind, info);
  }
  if (!kind.definition.verbs.some((each) => each === verb)) throw notAllowed(kind, verb);
  // Upstream has no route for it but among those of custom resources, though its authorisation reads it as a get.
  if (exchange.request.method === 'HEAD' && kind.definition.custom === undefined) throw methodNotAllowed();
  // A collection is not written as a whole.
  if (info.name === '' && (verb === 'update' || verb === 'patch')) throw methodNotAllowed();
  switch (verb) {
    case 'get':
      return get(context, exchange, kind, info);
    case 'list':
      return list(context, exchange, kind, info);
    case 'watch':
      // The old form of a path names the verb, whatever the method.
      if (exchange.request.method !== 'GET') throw methodNotAllowed();
      return watch(context, exchange, kind, info);
    case 'create':
      return create(context, exchange, kind, info);
    case 'update':
      return update(context, exchange, kind, info);
    case 'patch':
      return patch(context, exchange, kind, info);
    case 'delete':
      return remove(context, exchange, kind, info);
    case 'deletecollection':
      return removeCollection(context, exchange, kind, info);
    default:
      throw methodNotAllowed();
  }
}

/** Custom resources say which they are. Source: k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go. */
function notAllowed({ definition, group, plural }: ServedKind, verb: string): ApiError {
  if (definition.custom === undefined) return methodNotAllowed();
  const message = `${verb} is not supported on resources of kind ${JSON.stringify(`${plural}.${group}`)}`;
  return new ApiError('MethodNotAllowed', message, { group, kind: plural });
}

/** What the options of a verb are called in messages about them. */
const OPTIONS: Readonly<Record<string, string>> = {
  update: 'UpdateOptions',
  patch: 'PatchOptions',
  delete: 'DeleteOptions',
  deletecollection: 'DeleteOptions',
};

function writeRequest(
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
  options = parseWriteOptions(OPTIONS[info.verb] ?? 'CreateOptions', info.query, exchange.header('user-agent')),
): WriteRequest {
  return {
    kind,
    namespace: kind.definition.namespaced ? info.namespace : '',
    name: info.name,
    subresource: info.subresource,
    user: exchange.user,
    options,
    warnings: exchange.warnings,
    deadlineMs: exchange.deadlineMs,
    annotate: (key, value, level) => exchange.audit?.annotate(key, value, level),
  };
}

const limitOf = (context: RestContext): number => context.config.maxBodyBytes ?? MAX_BODY;

async function readObject(
  context: RestContext,
  exchange: Exchange,
  kind: DecodedKind,
  request: WriteRequest,
): Promise<KubeObject> {
  const format = bodyFormat(exchange.header('content-type'));
  const body = await readBody(exchange.request, limitOf(context));
  request.bodyBytes = body.length;
  const large = isLarge(body.length);
  const document = decodeBody(body, format, kind.kind);
  if (kind.definition?.custom !== undefined) requireKind(document, body, format, kind.kind);
  if (large) await giveTurn();
  const duplicates = request.options.validation === 'Ignore' ? [] : duplicatesOf(body, format, document);
  if (large) await giveTurn();
  exchange.audit?.sent(document);
  // Of custom resources, and of YAML, upstream reads what occurs twice before it looks at what there may be.
  const asSent = kind.definition?.custom === undefined && duplicates[0]?.startsWith('duplicate field') === true;
  const inOrder = asSent ? (unknown: readonly string[]) => strictErrors(body, unknown) : undefined;
  return decodeSent(kind, document, duplicates, request.options.validation, request.warnings, inOrder);
}

async function create(
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  const form = negotiate(exchange.request.headers.accept, speaksProtobuf(kind));
  const request = writeRequest(exchange, kind, info);
  if (info.name !== '') throw methodNotAllowed();
  const object = await readObject(context, exchange, kind, request);
  const created = await createObject(context, request, object);
  sendObject(context, exchange, kind, created, form, 201);
}

/** A question that does not say which namespace it is about is about that of its address; no other is taken. */
function placeIn(object: KubeObject, namespace: string): void {
  const { namespace: said = '' } = object.metadata ?? {};
  if (said !== '' && said !== namespace)
    throw errors.badRequest('the namespace of the provided object does not match the namespace sent on the request');
  object.metadata = { ...object.metadata, namespace };
}

async function review(
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  negotiate(exchange.request.headers.accept, speaksProtobuf(kind), false);
  const request = writeRequest(exchange, kind, info);
  const object = toStored(kind, await readObject(context, exchange, kind, request));
  if (kind.definition.namespaced) placeIn(object, info.namespace);
  kind.definition.setDefaults?.(object);
  const failures = kind.definition.strategy.validate?.(object) ?? [];
  if (failures.length > 0) throw invalid(kind.definition, object.metadata?.name ?? '', failures);
  if (kind.kind === 'Binding') {
    // The old form of pods/NAME/binding, from before sub-resources.
    const pods = context.kinds.stored('pods', '');
    await bindPod(
      context,
      { ...request, kind: pods, name: object.metadata?.name ?? '', subresource: 'binding' },
      object as Binding,
      { ...request, name: object.metadata?.name ?? '' },
    );
    return exchange.sendObject(201, success());
  }
  const handler = virtualHandler(kind.kind);
  if (handler === undefined) throw noSuchResource();
  await admitQuestion(context, request, object);
  const answer = await handler(context, object, { user: exchange.user, namespace: info.namespace });
  exchange.sendObject(201, fromStored(kind, answer));
}

async function update(
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  const strategy = strategyAt(kind, info.subresource);
  if (strategy === undefined) throw noSuchResource();
  const form = negotiate(exchange.request.headers.accept, speaksProtobuf(kind));
  const request = writeRequest(exchange, kind, info);
  const object = await readObject(context, exchange, kind, request);
  checkName(request, object);
  try {
    const updated = await updateObject(context, request, {
      strategy,
      versionRequired: true,
      next: () => clone(object as object as JsonObject) as object as KubeObject,
    });
    sendObject(context, exchange, kind, updated.object, form, 200);
  } catch (error) {
    const creates = kind.definition.allowCreateOnUpdate === true && info.subresource === '';
    if (!creates || !(error instanceof ApiError) || error.reason !== 'NotFound') throw error;
    await context.authorization.requireEach(exchange.user, [{ ...actionAt(info), verb: 'create' }]);
    sendObject(context, exchange, kind, await createObject(context, request, object), form, 201);
  }
}

const actionAt = (info: ResourceRequestInfo) => ({
  verb: info.verb,
  group: info.group,
  resource: info.plural,
  subresource: info.subresource,
  namespace: info.namespace,
  name: info.name,
});

async function patch(
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  const strategy = strategyAt(kind, info.subresource);
  if (strategy === undefined) throw noSuchResource();
  const form = negotiate(exchange.request.headers.accept, speaksProtobuf(kind));
  const kindOfPatch = patchForm(exchange.header('content-type'), kind.definition.custom !== undefined);
  const request = writeRequest(exchange, kind, info);
  const bytes = await readBody(exchange.request, limitOf(context));
  request.bodyBytes = bytes.length;
  const body = decodePatch(bytes, kindOfPatch);
  if (isLarge(bytes.length)) await giveTurn();
  exchange.audit?.sent(body as object);
  if (kindOfPatch !== 'apply') {
    if (request.options.force)
      throw invalidOptions('PatchOptions', [fieldError.forbidden('force', 'may not be specified for non-apply patch')]);
    const duplicates = kindOfPatch === 'json' ? [] : sentTwice(bytes, 'json', body, request);
    const { object } = await patchObject(context, request, kindOfPatch, body, strategy, duplicates);
    return sendObject(context, exchange, kind, object, form, 200);
  }
  const twice = sentTwice(bytes, 'yaml', body, request);
  if (twice.length > 0 && request.options.validation === 'Strict')
    throw errors.badRequest(`error strict decoding YAML: error converting YAML to JSON: ${strictly(twice).join(', ')}`);
  request.warnings.push(...twice);
  const applied = await applyObject(context, request, configurationOf(body, info.query), strategy, () =>
    context.authorization.requireEach(exchange.user, [{ ...actionAt(info), verb: 'create' }]),
  );
  sendObject(context, exchange, kind, applied.object, form, applied.created ? 201 : 200);
}

/** The fields that a patch has twice, where somebody wants to know. */
function sentTwice(bytes: Buffer, format: 'json' | 'yaml', body: JsonValue, request: WriteRequest): readonly string[] {
  if (request.options.validation === 'Ignore' || typeof body !== 'object' || body === null || Array.isArray(body))
    return [];
  return duplicatesOf(bytes, format, body);
}

async function remove(
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  const form = negotiate(exchange.request.headers.accept, speaksProtobuf(kind));
  const body = await readBody(exchange.request, limitOf(context));
  const options = parseDeleteOptions(body, exchange.header('content-type'), info.query, exchange.audit);
  warnOfOrphans(exchange, kind, options);
  const request = writeRequest(exchange, kind, info);
  const deleted = await deleteObject(context, request, options);
  // A namespace, too, which is only marked.
  const shows = kind.definition.returnsDeleted === true || (kind.group === '' && kind.plural === 'namespaces');
  if (deleted.removed && !shows) {
    exchange.sendObject(200, deletedStatus(kind, deleted.object.parse()));
  } else {
    // Upstream tells that something is left only those who ask for it so; others were used to 200.
    const code = !deleted.removed && options.orphans === false ? 202 : 200;
    const { object, revision } = deleted;
    // As it was, at the revision of the delete.
    const last = revision === undefined ? object : object.atRevision(revision);
    sendObject(context, exchange, kind, await shown(kind, last), form, code);
  }
}

/** Source: k8s.io/kubernetes/pkg/registry/batch/job/storage. */
function warnOfOrphans(exchange: Exchange, kind: ServedKind, { propagation, orphans }: DeleteOptions): void {
  const { group, plural } = kind.definition;
  if (group === 'batch' && plural === 'jobs' && propagation === undefined && orphans === undefined)
    exchange.warnings.push(ORPHANED_PODS);
}

async function removeCollection(
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  const { cache } = kind;
  if (cache === undefined) throw methodNotAllowed();
  const body = await readBody(exchange.request, limitOf(context));
  const deletion = parseDeleteOptions(body, exchange.header('content-type'), info.query, exchange.audit);
  warnOfOrphans(exchange, kind, deletion);
  const options = { ...parseListOptions(kind, info.query, false), limit: undefined };
  const snapshot = await takeSnapshot(
    context,
    kind,
    cache,
    info.namespace === '' ? undefined : info.namespace,
    options,
  );
  const pending = [...snapshot.objects];
  const items: KubeObject[] = [];
  const work = async (): Promise<void> => {
    for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
      const request = {
        ...writeRequest(exchange, kind, info),
        name: next.name,
        namespace: next.namespace,
        collective: true,
      };
      try {
        const { object } = await deleteObject(context, request, deletion);
        items.push(listItem(kind, fromStored(kind, (await shown(kind, object)).parse())));
      } catch (error) {
        if (!(error instanceof ApiError) || error.reason !== 'NotFound') throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: DELETE_WORKERS }, work));
  const list: KubeList<KubeObject> = {
    kind: kind.definition.listKind,
    apiVersion: kind.apiVersion,
    metadata: { resourceVersion: String(snapshot.revision) },
    items,
  };
  exchange.sendObject(200, list as KubeObject);
}

function dispatchSubresource(
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> | undefined {
  const { subresource, verb } = info;
  if (subresource === 'scale' && kind.definition.scale !== undefined) {
    const { scale } = kind.definition;
    if (verb === 'get') return getScale(context, exchange, kind, info, scale);
    if (verb === 'update') return putScale(context, exchange, kind, info, scale);
    if (verb === 'patch') return changeScale(context, exchange, kind, info, scale);
    throw notAllowed(kind, verb);
  }
  if (strategyAt(kind, subresource) !== undefined) {
    if (verb === 'get') return get(context, exchange, kind, info);
    if (verb === 'update') return update(context, exchange, kind, info);
    if (verb === 'patch') return patch(context, exchange, kind, info);
    throw notAllowed(kind, verb);
  }
  if (kind.definition.custom !== undefined) throw errors.notFound(kind, info.name);
  if (!(kind.definition.extraSubresources ?? []).some((each) => each.name === subresource)) throw noSuchResource();
  switch (subresource) {
    case 'binding':
      return verb === 'create' ? bind(context, exchange, kind, info) : refuse();
    case 'eviction':
      return verb === 'create' ? evict(context, exchange, kind, info) : refuse();
    case 'token':
      return verb === 'create' ? token(context, exchange, kind, info) : refuse();
    case 'log':
      return exchange.request.method === 'GET' ? stream(context, exchange, info) : refuse();
    case 'exec':
    case 'attach':
    case 'portforward':
      // Asking to upgrade, by either method; anything else is not theirs.
      return verb === 'get' || verb === 'create' ? stream(context, exchange, info) : refuse();
    case 'proxy':
      return stream(context, exchange, info);
    default:
      throw noSuchResource();
  }
}

function refuse(): never {
  throw methodNotAllowed();
}

async function bind(
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  const request = writeRequest(exchange, kind, info);
  const schema = schemaOf({ group: '', version: 'v1', kind: 'Binding' });
  const body = await readObject(context, exchange, { apiVersion: 'v1', kind: 'Binding', schema }, request);
  await bindPod(context, request, body as Binding);
  exchange.sendObject(201, success(undefined, 201));
}

async function evict(
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  const request = writeRequest(exchange, kind, info);
  const body = await readBody(exchange.request, limitOf(context));
  const document = decodeBody(body, bodyFormat(exchange.header('content-type')), 'Eviction');
  const eviction = { group: 'policy', version: 'v1', kind: 'Eviction' };
  const { name } = (document['metadata'] ?? {}) as { readonly name?: unknown };
  if (name !== info.name) throw errors.badRequest('name in URL does not match name in Eviction object');
  await admitBody(context, request, 'CREATE', eviction, { ...document, apiVersion: 'policy/v1', kind: 'Eviction' });
  const given = document['deleteOptions'];
  const options =
    typeof given === 'object' && given !== null && !Array.isArray(given)
      ? Buffer.from(JSON.stringify(given as JsonObject))
      : Buffer.alloc(0);
  const deletion = parseDeleteOptions(options, undefined, info.query);
  const dryRun = deletion.dryRun || request.options.dryRun;
  await evictPod(context, { ...request, options: { ...request.options, dryRun } }, { ...deletion, dryRun });
  exchange.sendObject(201, success(undefined, 201));
}

async function token(
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
): Promise<void> {
  const request = writeRequest(exchange, kind, info);
  const schema = schemaOf({ group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' });
  const tokenKind = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', schema };
  const body = await readObject(context, exchange, tokenKind, request);
  exchange.sendObject(201, await createToken(context, request, body as TokenRequest));
}

async function putScale(
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
  mapping: ScaleMapping,
): Promise<void> {
  const request = writeRequest(exchange, kind, info);
  const asked = (await readObject(context, exchange, scaleKind, request)) as Scale;
  await updateScale(context, exchange, request, mapping, asked);
}

async function changeScale(
  context: RestContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
  mapping: ScaleMapping,
): Promise<void> {
  const request = writeRequest(exchange, kind, info);
  const form = patchForm(exchange.header('content-type'), kind.definition.custom !== undefined);
  const body = decodePatch(await readBody(exchange.request, limitOf(context)), form);
  await patchScale(context, exchange, request, mapping, form, body);
}
