/**
 * Handles the annotation with which workloads follow tags of image streams. Source: openshift/library-go
 * pkg/image/trigger; OKD's documentation "Triggering updates on image stream changes".
 */
import type { JsonValue, KubeObject } from '../../../api/meta/object.ts';

export const TRIGGERS = 'image.openshift.io/triggers';
const MAX_TRIGGERS = 100;

export interface Trigger {
  readonly namespace: string | undefined;
  /** Name of the tag, `stream:tag`. */
  readonly name: string;
  readonly container: {
    readonly list: 'containers' | 'initContainers';
    readonly name?: string;
    readonly index?: number;
  };
  /** Names of the fields that lead to the pod spec. */
  readonly path: readonly string[];
}

const FIELD = /^([\w.]+)\.(containers|initContainers)\[(?:(\d{1,3})|\?\(@\.name==["']([^"']{1,63})["']\))\]\.image$/;

/** Valid triggers in the annotation of the object. Paused and invalid triggers are omitted. */
export function triggersOf(object: KubeObject): Trigger[] {
  const text = object.metadata?.annotations?.[TRIGGERS];
  if (text === undefined || text === '') return [];
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return [];
  }
  return Array.isArray(parsed) ? parsed.slice(0, MAX_TRIGGERS).flatMap((each) => triggerOf(each) ?? []) : [];
}

interface Written {
  readonly from?: { readonly kind?: unknown; readonly name?: unknown; readonly namespace?: unknown };
  readonly fieldPath?: unknown;
  readonly paused?: unknown;
}

function triggerOf(value: unknown): Trigger | undefined {
  const { from, fieldPath, paused } = (value ?? {}) as Written;
  if (from?.kind !== 'ImageStreamTag' || typeof from.name !== 'string' || typeof fieldPath !== 'string')
    return undefined;
  if (paused === true || paused === 'true') return undefined;
  const match = FIELD.exec(fieldPath);
  if (match === null) return undefined;
  const [, path = '', list, index, name] = match;
  return {
    namespace: typeof from.namespace === 'string' && from.namespace !== '' ? from.namespace : undefined,
    name: from.name,
    path: path.split('.'),
    container: {
      list: list === 'initContainers' ? 'initContainers' : 'containers',
      ...(name === undefined ? { index: Number(index) } : { name }),
    },
  };
}

/**
 * Returns a copy of the object with the latest images of its triggers; undefined if nothing changes. `pullSpec` returns
 * the latest image of a tag.
 */
export function planTriggers<T extends KubeObject>(
  object: T,
  pullSpec: (namespace: string, tag: string) => string | undefined,
): T | undefined {
  let changed: T | undefined;
  for (const { namespace, name, path, container } of triggersOf(object)) {
    const image = pullSpec(namespace ?? object.metadata?.namespace ?? '', name);
    if (image === undefined) continue;
    const target = changed ?? structuredClone(object);
    let at: JsonValue | undefined = target;
    for (const step of path) at = field(at, step);
    const list = field(at, container.list);
    const found = Array.isArray(list)
      ? list.find((each, index) =>
          container.name === undefined ? index === container.index : field(each, 'name') === container.name,
        )
      : undefined;
    if (typeof found !== 'object' || found === null || Array.isArray(found) || found['image'] === image) continue;
    found['image'] = image;
    changed = target;
  }
  return changed;
}

function field(value: JsonValue | undefined, name: string): JsonValue | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, name) ? value[name] : undefined;
}
