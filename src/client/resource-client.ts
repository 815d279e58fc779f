import { apiVersionOf, type KubeList, type KubeObject, type ResourceType } from '../api/meta/object.ts';
import { ApiError, type Status } from '../api/meta/status.ts';
import { messageOf } from '../base/errors.ts';
import { parseJson } from '../base/json/json.ts';
import { LineDecoder } from './line-decoder.ts';
import { collectionPath, listQuery, objectPath, query, watchQuery } from './resource-path.ts';
import type { Transport } from './transport.ts';
import type { PatchType, ResourceClient, WatchEvent, WatchOptions, WriteOptions } from './types.ts';

const PATCH_CONTENT_TYPE: Readonly<Record<PatchType, string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

export function createResourceClient<T extends KubeObject>(
  transport: Transport,
  type: ResourceType<T>,
  fieldManager: string | undefined,
): ResourceClient<T> {
  const apiVersion = apiVersionOf(type);
  const withType = (object: T): T => ({ ...object, apiVersion, kind: type.kind });
  const writeQuery = (options: WriteOptions | undefined, extra: { readonly force?: boolean } = {}): string =>
    query({
      fieldManager: options?.fieldManager ?? fieldManager,
      dryRun: options?.dryRun === true ? 'All' : undefined,
      force: extra.force === true ? true : undefined,
    });
  const signalOf = (options: { readonly signal?: AbortSignal } | undefined) =>
    options?.signal === undefined ? {} : { signal: options.signal };

  return {
    get: async (name, namespace) =>
      (await transport.json({ method: 'GET', path: objectPath(type, name, namespace) })) as T,

    list: async (options = {}) => {
      const path = collectionPath(type, options.namespace) + listQuery(options);
      const accept = options.metadataOnly === true ? { accept: metadataForm('PartialObjectMetadataList') } : {};
      const list = (await transport.json({ method: 'GET', path, ...accept, ...signalOf(options) })) as KubeList<T>;
      // Items of a list from the server have no apiVersion and kind. Code that uses a single item (events, owner
      // references) needs them.
      for (const item of list.items) {
        if (options.metadataOnly === true) restoreType(item, type);
        item.apiVersion ??= apiVersion;
        item.kind ??= type.kind;
      }
      return list;
    },

    watch: (options = {}) => watch<T>(transport, type, options),

    create: async (object, options) => {
      const metadata = object.metadata;
      const path =
        options?.subresource === undefined
          ? collectionPath(type, metadata?.namespace)
          : objectPath(type, metadata?.name, metadata?.namespace, options.subresource);
      return (await transport.json({
        method: 'POST',
        path: path + writeQuery(options),
        body: withType(object),
        ...signalOf(options),
      })) as T;
    },

    update: async (object, options) => {
      const metadata = object.metadata;
      const path = objectPath(type, metadata?.name, metadata?.namespace, options?.subresource);
      return (await transport.json({
        method: 'PUT',
        path: path + writeQuery(options),
        body: withType(object),
        ...signalOf(options),
      })) as T;
    },

    patch: async (name, namespace, patchType, body, options) => {
      const path = objectPath(type, name, namespace, options?.subresource);
      return (await transport.json({
        method: 'PATCH',
        path: path + writeQuery(options, options),
        body,
        contentType: PATCH_CONTENT_TYPE[patchType],
        ...signalOf(options),
      })) as T;
    },

    createSubresource: async <R>(name: string, namespace: string | undefined, subresource: string, body: unknown) =>
      (await transport.json({ method: 'POST', path: objectPath(type, name, namespace, subresource), body })) as R,

    delete: async (name, namespace, options) => {
      await transport.json({
        method: 'DELETE',
        path: objectPath(type, name, namespace),
        ...(options === undefined ? {} : { body: { apiVersion: 'v1', kind: 'DeleteOptions', ...options } }),
      });
    },
  };
}

/** Accept header for metadata-only requests. Source: Kubernetes API concepts, "Metadata-only fetches". */
function metadataForm(as: 'PartialObjectMetadata' | 'PartialObjectMetadataList'): string {
  return `application/json;as=${as};g=meta.k8s.io;v=v1`;
}

/**
 * Replaces the kind PartialObjectMetadata by the kind of the object. Also drops the managed fields, which are most of
 * the remaining data.
 */
function restoreType(object: KubeObject, type: ResourceType): void {
  object.apiVersion = apiVersionOf(type);
  object.kind = type.kind;
  delete object.metadata?.managedFields;
}

async function* watch<T extends KubeObject>(
  transport: Transport,
  type: ResourceType<T>,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<T>> {
  const { body } = await transport.stream({
    method: 'GET',
    path: collectionPath(type, options.namespace) + watchQuery(options),
    ...(options.metadataOnly === true ? { accept: metadataForm('PartialObjectMetadata') } : {}),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const decoder = new LineDecoder();
  for await (const chunk of body) {
    for (const line of decoder.push(chunk)) {
      const event = decodeEvent<T>(line);
      if (options.metadataOnly === true) restoreType(event.object, type);
      yield event;
    }
  }
}

function decodeEvent<T extends KubeObject>(line: string): WatchEvent<T> {
  let event: { type?: unknown; object?: unknown };
  try {
    event = parseJson(line) as typeof event;
  } catch (error) {
    throw new ApiError('InternalError', `the watch stream is not JSON: ${messageOf(error)}`);
  }
  switch (event.type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
    case 'BOOKMARK':
      return { type: event.type, object: event.object as T };
    case 'ERROR': {
      const status = event.object as Partial<Status>;
      throw ApiError.fromStatus(status, status.code ?? 500);
    }
    default:
      throw new ApiError('InternalError', `unknown watch event ${JSON.stringify(event.type)}`);
  }
}
