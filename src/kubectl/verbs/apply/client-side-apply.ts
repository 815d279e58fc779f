/**
 * `apply` without `--server-side`: the client merges the manifest, the live object and the former manifest, which is
 * stored in an annotation. Source: k8s.io/kubectl/pkg/cmd/apply patcher.go.
 */
import { isApiError } from '../../../api/meta/status.ts';
import { printable } from '../../../base/text/printable.ts';
import { goJson } from '../../core/encode.ts';
import { type AnyObject, LAST_APPLIED } from '../../core/objects.ts';
import { openApiPath, schemaOfKind } from '../../core/openapi.ts';
import { pathOf, type ResourceInfo } from '../../core/resources.ts';
import { type MergeSchema, mergePatchFor, threeWayMerge } from '../../core/three-way.ts';
import { dryRunOf, validationOf, writeQuery } from '../../printing.ts';
import type { Session } from '../../session.ts';

export interface PlacedManifest {
  readonly object: AnyObject;
  readonly source: string;
  readonly resource: ResourceInfo;
  readonly namespace: string | undefined;
  readonly name: string;
}

/** Failure of the request that creates an object. kubectl prints another message for it. */
export class CreationError extends Error {}

const MANAGER = 'kubectl-client-side-apply';
/** End of the warning about an object that was not created by `apply`. */
const MISSING =
  'which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either ' +
  'kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.';
/** Maximum number of attempts when other clients write the object concurrently. */
const ATTEMPTS = 5;

export async function readIfPresent(session: Session, path: string): Promise<AnyObject | undefined> {
  try {
    return await session.get(path);
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** Applies the manifest. A conflict with another client is retried. Throws ApiError. */
export async function applyHere(
  session: Session,
  manifest: PlacedManifest,
): Promise<{ readonly object: AnyObject; readonly outcome: string }> {
  const { resource, namespace, name } = manifest;
  const { flags } = session.context;
  const isLocal = dryRunOf(flags) === 'client';
  const query = { ...writeQuery(flags, MANAGER), fieldValidation: validationOf(flags.text('validate')) };
  const path = pathOf(resource, namespace, name);
  for (let attempt = 1; ; attempt += 1) {
    const live = await readIfPresent(session, path);
    if (live === undefined) {
      const body = withLastApplied(manifest.object);
      if (isLocal) return { object: body, outcome: 'created' };
      return { object: await create(session, pathOf(resource, namespace), query, body), outcome: 'created' };
    }
    if (attempt === 1 && live.metadata?.annotations?.[LAST_APPLIED] === undefined)
      session.context.io.err(
        printable(`Warning: resource ${resource.name}/${name} is missing the ${LAST_APPLIED} annotation ${MISSING}\n`),
      );
    const wanted = await mergedWith(session, manifest, live);
    const patch = mergePatchFor(live, wanted);
    if (patch === undefined) return { object: live, outcome: 'unchanged' };
    if (isLocal) return { object: wanted, outcome: 'configured' };
    // The patch replaces lists as a whole. The resourceVersion makes it fail if another client has changed the object.
    const metadata = { ...(patch['metadata'] as object | undefined), resourceVersion: live.metadata?.resourceVersion };
    try {
      const body = { ...patch, metadata };
      const after = await session.send('PATCH', path, { query, body, contentType: 'application/merge-patch+json' });
      return { object: after, outcome: 'configured' };
    } catch (error) {
      if (!isApiError(error, 'Conflict') || attempt === ATTEMPTS) throw error;
    }
  }
}

async function create(
  session: Session,
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  body: AnyObject,
): Promise<AnyObject> {
  try {
    return await session.send('POST', path, { query, body });
  } catch (error) {
    if (isApiError(error, 'Invalid')) throw error;
    throw new CreationError('', { cause: error });
  }
}

/** The live object after the merge. The schema with the merge keys is read only if something differs. */
async function mergedWith(session: Session, manifest: PlacedManifest, live: AnyObject): Promise<AnyObject> {
  const former = formerOf(live);
  const wanted = withLastApplied(manifest.object);
  const simple = threeWayMerge(former, wanted, live, undefined);
  if (mergePatchFor(live, simple) === undefined) return live;
  return threeWayMerge(former, wanted, live, await schemaOf(session, manifest.resource)) as AnyObject;
}

/** Manifest of the last `apply`; undefined if the annotation is missing or not JSON. */
function formerOf(live: AnyObject): unknown {
  const text = live.metadata?.annotations?.[LAST_APPLIED];
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // Another client wrote the annotation. Then only fields of the manifest are changed.
    return undefined;
  }
}

async function schemaOf(session: Session, resource: ResourceInfo): Promise<MergeSchema | undefined> {
  const document = await session.openApi(openApiPath(resource));
  const schemas = document.components?.schemas ?? {};
  const root = schemaOfKind(schemas, resource);
  return root === undefined ? undefined : { schemas, root };
}

function withLastApplied(object: AnyObject): AnyObject {
  const { [LAST_APPLIED]: _, ...annotations } = object.metadata?.annotations ?? {};
  const clean: AnyObject = { ...object, metadata: { ...object.metadata, annotations } };
  return {
    ...object,
    metadata: { ...object.metadata, annotations: { ...annotations, [LAST_APPLIED]: `${goJson(clean)}\n` } },
  };
}
