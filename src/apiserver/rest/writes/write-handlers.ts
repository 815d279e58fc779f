/** Handlers of create, update, patch, delete and deletecollection. */
import { fieldError } from '../../../api/meta/field-error.ts';
import type { JsonValue, KubeList, KubeObject } from '../../../api/meta/object.ts';
import { ApiError, errors } from '../../../api/meta/status.ts';
import type { WriteStrategy } from '../../../api/registry/definition.ts';
import { cloneJson } from '../../core/patch/document.ts';
import { readBody } from '../../http/body.ts';
import { duplicatesOf } from '../../http/decode.ts';
import { negotiate } from '../../http/negotiate.ts';
import type { ResourceRequestInfo } from '../../http/request-info.ts';
import { duplicateErrors } from '../../pipeline/decode-object.ts';
import { fromStored, inServedVersion, type ServedKind } from '../../pipeline/kinds.ts';
import { methodNotAllowed, type WriteRequest } from '../../pipeline/write-request.ts';
import type { Handler } from '../handler.ts';
import { sendObject } from '../reads/get.ts';
import { listItem } from '../reads/list-items.ts';
import { parseListOptions } from '../reads/list-options.ts';
import { supportsProtobuf } from '../reads/messages.ts';
import { requireOwn } from '../reads/readable.ts';
import { noSuchResource } from '../reads/served-at.ts';
import { takeSnapshot } from '../reads/snapshot.ts';
import { deletedStatus } from '../status-responses.ts';
import { strategyAt } from '../subresources/strategies.ts';
import { applyObject, configurationOf } from './apply.ts';
import { createObject } from './create.ts';
import { deleteObject } from './delete.ts';
import { parseDeleteOptions } from './delete-options.ts';
import { checkName, patchForm, patchObject } from './patch.ts';
import { limitOf, readObject, readPatch, writeRequest } from './request-body.ts';
import { updateObject } from './update.ts';
import { invalidOptions } from './write-options.ts';

/** Maximum number of concurrent deletes of a deletecollection. */
const DELETE_WORKERS = 8;

function requiredStrategy(kind: ServedKind, subresource: string): WriteStrategy<KubeObject> {
  const strategy = strategyAt(kind, subresource);
  if (strategy === undefined) throw noSuchResource();
  return strategy;
}

export const create: Handler = async (context, exchange, kind, info) => {
  const form = negotiate(exchange.request.headers.accept, { protobuf: supportsProtobuf(kind) });
  const request = writeRequest(exchange, kind, info);
  if (info.name !== '') throw methodNotAllowed();
  const object = await readObject(context, exchange, kind, request);
  const created = await createObject(context, request, object);
  sendObject(context, exchange, { kind, object: created, form, code: 201 });
};

export const update: Handler = async (context, exchange, kind, info) => {
  const strategy = requiredStrategy(kind, info.subresource);
  const form = negotiate(exchange.request.headers.accept, { protobuf: supportsProtobuf(kind) });
  const request = writeRequest(exchange, kind, info);
  const object = await readObject(context, exchange, kind, request);
  checkName(request, object);
  try {
    const updated = await updateObject(context, request, {
      strategy,
      versionRequired: true,
      next: () => cloneJson(object) as KubeObject,
    });
    sendObject(context, exchange, { kind, object: updated.object, form });
  } catch (error) {
    const creates = kind.definition.allowCreateOnUpdate === true && info.subresource === '';
    if (!creates || !(error instanceof ApiError) || error.reason !== 'NotFound') throw error;
    await context.authorization.requireEach(exchange.user, [{ ...actionAt(info), verb: 'create' }]);
    const created = await createObject(context, request, object);
    sendObject(context, exchange, { kind, object: created, form, code: 201 });
  }
};

const actionAt = (info: ResourceRequestInfo) => ({
  verb: info.verb,
  group: info.group,
  resource: info.plural,
  subresource: info.subresource,
  namespace: info.namespace,
  name: info.name,
});

export const patch: Handler = async (context, exchange, kind, info) => {
  const strategy = requiredStrategy(kind, info.subresource);
  const form = negotiate(exchange.request.headers.accept, { protobuf: supportsProtobuf(kind) });
  const kindOfPatch = patchForm(exchange.header('content-type'), { custom: kind.definition.custom !== undefined });
  const request = writeRequest(exchange, kind, info);
  const { bytes, body } = await readPatch(context, exchange, kindOfPatch, request);
  exchange.audit?.sent(body as object);
  if (kindOfPatch !== 'apply') {
    if (request.options.force)
      throw invalidOptions('PatchOptions', [fieldError.forbidden('force', 'may not be specified for non-apply patch')]);
    const duplicates = kindOfPatch === 'json' ? [] : sentTwice(bytes, 'json', body, request);
    const { object } = await patchObject(context, request, { form: kindOfPatch, patch: body, strategy, duplicates });
    return sendObject(context, exchange, { kind, object, form });
  }
  const twice = sentTwice(bytes, 'yaml', body, request);
  if (twice.length > 0 && request.options.validation === 'Strict')
    throw errors.badRequest(
      `error strict decoding YAML: error converting YAML to JSON: ${duplicateErrors(twice).join(', ')}`,
    );
  request.warnings.push(...twice);
  const applied = await applyObject(context, request, configurationOf(body, info.query), strategy, () =>
    context.authorization.requireEach(exchange.user, [{ ...actionAt(info), verb: 'create' }]),
  );
  sendObject(context, exchange, { kind, object: applied.object, form, code: applied.created ? 201 : 200 });
};

/** Duplicate fields of a patch. Empty if field validation is off. */
function sentTwice(bytes: Buffer, format: 'json' | 'yaml', body: JsonValue, request: WriteRequest): readonly string[] {
  if (request.options.validation === 'Ignore' || typeof body !== 'object' || body === null || Array.isArray(body))
    return [];
  return duplicatesOf(bytes, format, body);
}

export const remove: Handler = async (context, exchange, kind, info) => {
  const form = negotiate(exchange.request.headers.accept, { protobuf: supportsProtobuf(kind) });
  const body = await readBody(exchange.request, limitOf(context));
  const options = parseDeleteOptions(body, exchange.header('content-type'), info.query, exchange.audit);
  exchange.warnings.push(...(kind.definition.warningsOnDelete?.(options.propagation) ?? []));
  if (kind.alias?.isOwn !== undefined) await context.cache.freshen();
  requireOwn(kind, exchange.user, kind.cache?.get(info.namespace, info.name), info.name);
  const request = writeRequest(exchange, kind, info);
  const deleted = await deleteObject(context, request, options);
  if (deleted.removed && kind.definition.returnsDeleted === undefined) {
    exchange.sendObject(200, deletedStatus(kind, deleted.object.parse()));
  } else {
    // As upstream, 202 for a pending deletion is sent only with `orphanDependents: false`; older clients expect 200.
    const code = !deleted.removed && options.orphans === false ? 202 : 200;
    const { object, revision } = deleted;
    // The response shows the last state with the revision of the delete.
    const last = revision === undefined ? object : object.atRevision(revision);
    sendObject(context, exchange, { kind, object: await inServedVersion(kind, last), form, code });
  }
};

export const removeCollection: Handler = async (context, exchange, kind, info) => {
  const { cache } = kind;
  if (cache === undefined) throw methodNotAllowed();
  const body = await readBody(exchange.request, limitOf(context));
  const deletion = parseDeleteOptions(body, exchange.header('content-type'), info.query, exchange.audit);
  exchange.warnings.push(...(kind.definition.warningsOnDelete?.(deletion.propagation) ?? []));
  const options = { ...parseListOptions(kind, info.query), limit: undefined };
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
        items.push(listItem(kind, fromStored(kind, (await inServedVersion(kind, object)).parse())));
      } catch (error) {
        if (!(error instanceof ApiError) || error.reason !== 'NotFound') throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: DELETE_WORKERS }, work));
  const list: KubeList<KubeObject> = {
    kind: kind.presented.listKind,
    apiVersion: kind.apiVersion,
    metadata: { resourceVersion: String(snapshot.revision) },
    items,
  };
  exchange.sendObject(200, list as KubeObject);
};
