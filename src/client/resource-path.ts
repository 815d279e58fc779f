import type { ResourceType } from '../api/meta/object.ts';
import { assert } from '../base/errors.ts';
import type { ListOptions, WatchOptions } from './types.ts';

/**
 * Path of a collection: `/api/v1/namespaces/n/pods` or `/apis/group/version/…`. Without a namespace, it is the
 * collection of all namespaces.
 */
export function collectionPath(type: ResourceType, namespace?: string): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  return type.namespaced && namespace !== undefined && namespace !== ''
    ? `${root}/namespaces/${segment(namespace)}/${type.plural}`
    : `${root}/${type.plural}`;
}

/** Path of an object. Throws an Error if the kind is namespaced and `namespace` is missing. */
export function objectPath(
  type: ResourceType,
  name: string | undefined,
  namespace: string | undefined,
  subresource?: string,
): string {
  assert(name !== undefined && name !== '', `${type.plural}: an object needs a name`);
  assert(
    !type.namespaced || (namespace !== undefined && namespace !== ''),
    `${type.plural} "${name}" needs a namespace`,
  );
  const path = `${collectionPath(type, namespace)}/${segment(name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

export function query(parameters: Readonly<Record<string, string | number | boolean | undefined>>): string {
  let text = '';
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === '') continue;
    text += `${text === '' ? '?' : '&'}${name}=${encodeURIComponent(value)}`;
  }
  return text;
}

export function listQuery(options: ListOptions): string {
  return query({
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
    limit: options.limit,
    continue: options.continue,
    resourceVersion: options.resourceVersion,
  });
}

export function watchQuery(options: WatchOptions): string {
  return query({
    watch: 'true',
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
    resourceVersion: options.resourceVersion,
    allowWatchBookmarks: options.allowBookmarks,
    timeoutSeconds: options.timeoutSeconds,
  });
}

/** Escapes a name for a path. A colon, as in `system:node`, is not escaped. */
function segment(name: string): string {
  return encodeURIComponent(name).replaceAll('%3A', ':');
}
