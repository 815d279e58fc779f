/**
 * The scale sub-resource: get, update, patch and apply. Source: the ScaleREST of k8s.io/kubernetes/pkg/registry/apps
 * and of k8s.io/apiextensions-apiserver.
 */

import type { Scale } from '../../../api/generated/autoscaling/v1.ts';
import type { JsonObject, JsonValue, KubeObject } from '../../../api/meta/object.ts';
import { errors } from '../../../api/meta/status.ts';
import type { ScaleMapping } from '../../../api/registry/definition.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { applyServerSide, jsonPatch, mergePatch, ownersAfterScale, ownersOfScale } from '../../core/patch/index.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { ResourceRequestInfo } from '../../http/request-info.ts';
import { decodeObject } from '../../pipeline/decode-object.ts';
import type { ServedKind } from '../../pipeline/kinds.ts';
import { inServedVersion } from '../../pipeline/kinds.ts';
import type { WriteRequest } from '../../pipeline/write-request.ts';
import type { WriteContext } from '../context.ts';
import { applyScale, scaleKind, scaleOf } from '../subresources/scale.ts';
import { strategyAt } from '../subresources/strategies.ts';
import { checkApplied, configurationOf } from './apply.ts';
import { checkName, decodePatched, ofSameKind, type PatchForm, patchForm } from './patch.ts';
import { readObject, readPatch, writeRequest } from './request-body.ts';
import { sendScale } from './scale-answer.ts';
import { updateObject } from './update.ts';

export async function getScale(
  context: WriteContext,
  exchange: Exchange,
  kind: ServedKind,
  { namespace, name }: Pick<ResourceRequestInfo, 'namespace' | 'name'>,
  mapping: ScaleMapping,
): Promise<void> {
  await context.cache.freshen();
  const object = kind.cache?.get(namespace, name);
  if (object === undefined) throw errors.notFound(kind, name);
  sendScale(context, exchange, scaleOf(mapping, (await inServedVersion(kind, object)).parse()));
}

export async function putScale(
  context: WriteContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
  mapping: ScaleMapping,
): Promise<void> {
  const request = writeRequest(exchange, kind, info);
  const requested = (await readObject(context, exchange, scaleKind, request)) as Scale;
  await updateScale(context, exchange, request, mapping, requested);
}

export async function changeScale(
  context: WriteContext,
  exchange: Exchange,
  kind: ServedKind,
  info: ResourceRequestInfo,
  mapping: ScaleMapping,
): Promise<void> {
  const request = writeRequest(exchange, kind, info);
  const form = patchForm(exchange.header('content-type'), { custom: kind.definition.custom !== undefined });
  const { body } = await readPatch(context, exchange, form, request);
  if (form === 'apply') await apply(context, exchange, request, mapping, body);
  else await write(context, exchange, request, mapping, { next: patchedScale(request, mapping, form, body) });
}

function updateScale(
  context: WriteContext,
  exchange: Exchange,
  request: WriteRequest,
  mapping: ScaleMapping,
  requested: Scale,
): Promise<void> {
  checkName(request, requested);
  return write(context, exchange, request, mapping, { next: () => requested, whole: true });
}

/** Returns a function that computes the Scale of the current object, with the patch applied. */
function patchedScale(
  request: WriteRequest,
  mapping: ScaleMapping,
  form: Exclude<PatchForm, 'apply'>,
  patch: JsonValue,
): (current: KubeObject) => Scale {
  return (current) => {
    const before = scaleOf(mapping, current);
    const merged = (scale: JsonObject): JsonObject => mergePatch(scale, patch);
    const patched =
      form === 'json' ? jsonPatch(before, patch) : form === 'strategic' ? ofSameKind(before, merged) : merged(before);
    const warnings: string[] = [];
    const scale = decodePatched(
      form,
      patch,
      () => decodeObject(scaleKind, patched, { validation: request.options.validation, warnings }) as Scale,
    );
    for (const each of warnings) if (!request.warnings.includes(each)) request.warnings.push(each);
    checkName(request, scale);
    return scale;
  };
}

function apply(
  context: WriteContext,
  exchange: Exchange,
  request: WriteRequest,
  mapping: ScaleMapping,
  body: JsonValue,
): Promise<void> {
  const document = configurationOf(body, exchange.info.query);
  checkApplied(document, scaleKind);
  const applied = decodeObject(scaleKind, document, {
    validation: request.options.validation,
    warnings: request.warnings,
  });
  return write(context, exchange, request, mapping, {
    owned: true,
    next(current) {
      const live = scaleOf(mapping, current) as KubeObject;
      const owners = ownersOfScale(managedOf(current), mapping.specReplicasPath);
      const scale = applyServerSide({
        live: { ...live, metadata: { ...live.metadata, managedFields: owners } },
        applied: applied,
        force: request.options.force,
        manager: request.options.fieldManager,
        apiVersion: scaleKind.apiVersion,
        schema: scaleKind.schema,
        nowIso: timestamp(context.clock.nowMs()),
        subresource: 'scale',
      }) as Scale;
      checkName(request, scale);
      return scale;
    },
  });
}

interface ScaleChange {
  next(current: KubeObject): Scale;
  /** True if the client sent a complete Scale. A Scale of another object is rejected. */
  readonly whole?: boolean;
  /** True if the managed fields of the Scale determine the owner of the replicas. */
  readonly owned?: boolean;
}

const managedOf = (object: KubeObject): JsonValue | undefined => object.metadata?.managedFields;

async function write(
  context: WriteContext,
  exchange: Exchange,
  request: WriteRequest,
  mapping: ScaleMapping,
  change: ScaleChange,
): Promise<void> {
  const { kind } = request;
  const custom = kind.definition.custom !== undefined;
  const strategy = strategyAt(kind, '') ?? {};
  const updated = await updateObject(context, request, {
    strategy,
    ...(change.owned === true ? { owned: true } : {}),
    shownAs: (after, before) => ({
      bodyKind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
      body: scaleOf(mapping, after),
      oldBody: scaleOf(mapping, before),
    }),
    takeBack: (after, body) => applyScale(mapping, after, body as Scale, custom),
    next(current) {
      const changed = change.next(current);
      applyScale(mapping, current, changed, custom);
      const { resourceVersion, uid } = changed.metadata ?? {};
      if (change.whole === true && uid !== undefined && uid !== '' && uid !== current.metadata?.uid)
        throw errors.conflict(kind, request.name, uidMismatch(uid, current));
      const metadata: Record<string, unknown> = { ...current.metadata, resourceVersion };
      if (resourceVersion === undefined || resourceVersion === '') delete metadata['resourceVersion'];
      if (change.owned === true) {
        metadata['managedFields'] = ownersAfterScale(
          managedOf(current),
          managedOf(changed as KubeObject),
          mapping.specReplicasPath,
          kind.apiVersion,
        );
      }
      return { ...current, metadata };
    },
  });
  sendScale(context, exchange, scaleOf(mapping, updated.object.parse()));
}

const uidMismatch = (uid: string, current: KubeObject): string =>
  `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current.metadata?.uid ?? ''}`;
