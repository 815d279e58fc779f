/** Reads the objects of a manifest file: YAML documents or JSON, including lists. */
import { parseDocument } from 'yaml';
import type { KubeObject } from '../../api/meta/object.ts';
import { messageOf } from '../../base/errors.ts';

const MAX_DOCUMENT_BYTES = 2 * 1024 * 1024;
const MAX_ALIASES = 100;

export interface ManifestObject {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly body: KubeObject;
}

/**
 * Parses a file document by document and calls `pause` between documents, so that the event loop is not blocked. Throws
 * an Error that names the document.
 */
export async function readDocuments(text: string, pause: () => Promise<void>): Promise<ManifestObject[]> {
  const objects: ManifestObject[] = [];
  for (const [index, part] of text.split(/^---(?=\s|$)/m).entries()) {
    if (part.trim() === '') continue;
    const at = `document ${index + 1}`;
    if (part.length > MAX_DOCUMENT_BYTES) throw new Error(`${at}: larger than ${MAX_DOCUMENT_BYTES} bytes; split it`);
    const value = decode(part, at);
    if (value === null) continue;
    for (const item of itemsOf(value)) objects.push(objectOf(item, at));
    await pause();
  }
  return objects;
}

function decode(text: string, at: string): unknown {
  const document = parseDocument(text, { uniqueKeys: true });
  const [problem] = document.errors;
  if (problem !== undefined) throw new Error(`${at}: ${problem.message.split('\n', 1)[0]}`);
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    throw new Error(`${at}: ${messageOf(error)}`, { cause: error });
  }
}

function itemsOf(value: unknown): readonly unknown[] {
  if (!isObject(value) || typeof value['kind'] !== 'string' || !value['kind'].endsWith('List')) return [value];
  return Array.isArray(value['items']) ? value['items'] : [value];
}

function objectOf(value: unknown, at: string): ManifestObject {
  if (!isObject(value)) throw new Error(`${at}: not an object; give apiVersion, kind and metadata`);
  const { apiVersion, kind, metadata } = value;
  if (typeof apiVersion !== 'string' || !/^([a-z0-9.-]+\/)?v[a-z0-9]+$/.test(apiVersion))
    throw new Error(`${at}: apiVersion not set or invalid`);
  if (typeof kind !== 'string' || !/^[A-Za-z][A-Za-z0-9]*$/.test(kind))
    throw new Error(`${at}: kind not set or invalid`);
  const name = isObject(metadata) ? metadata['name'] : undefined;
  const namespace = isObject(metadata) ? metadata['namespace'] : undefined;
  if (typeof name !== 'string' || name === '') throw new Error(`${at}: ${kind}: metadata.name is required`);
  if (namespace !== undefined && typeof namespace !== 'string')
    throw new Error(`${at}: ${kind} ${name}: metadata.namespace is not a string`);
  const slash = apiVersion.indexOf('/');
  return {
    group: slash < 0 ? '' : apiVersion.slice(0, slash),
    version: apiVersion.slice(slash + 1),
    kind,
    name,
    namespace: namespace === '' ? undefined : namespace,
    body: value as KubeObject,
  };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
