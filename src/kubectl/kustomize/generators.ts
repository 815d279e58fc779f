/** `configMapGenerator` and `secretGenerator`. */
import { ClientError } from '../core/errors.ts';
import type { AnyObject } from '../core/objects.ts';
import type { GeneratorEntry, GeneratorOptions } from './kustomization.ts';
import { isNamed, type Resource } from './resource.ts';

export type ReadFile = (path: string, field: string) => Promise<Uint8Array>;

const TEXT = new TextDecoder('utf-8', { fatal: true });

/** Adds the generated object, or merges it into the object of the same name from a base. */
export async function generate(
  resources: Resource[],
  kind: 'ConfigMap' | 'Secret',
  entry: GeneratorEntry,
  common: GeneratorOptions | undefined,
  read: ReadFile,
): Promise<void> {
  if (typeof entry.name !== 'string' || entry.name === '')
    throw new ClientError(
      `${kind === 'Secret' ? 'secretGenerator' : 'configMapGenerator'}: name is missing; give each entry a name`,
    );
  const { object, needsHash } = await generated(kind, entry, common, read);
  const existing = resources.find((each) => each.object.kind === kind && isNamed(each, entry.name));
  const behavior = entry.behavior ?? 'create';
  if (behavior === 'create') {
    if (existing !== undefined)
      throw new ClientError(
        `may not add resource with an already registered id: ${kind}.v1.[noGrp]/${entry.name}.${entry.namespace ?? '[noNs]'}`,
      );
    resources.push({ object, names: [], needsHash });
    return;
  }
  if (existing === undefined)
    throw new ClientError(`id '${kind}.v1.[noGrp]/${entry.name}' does not exist; cannot merge or replace`);
  const before = existing.object;
  const merged = (field: 'data' | 'binaryData'): object => {
    const values = {
      ...(behavior === 'merge' ? (before[field] as object | undefined) : {}),
      ...(object[field] as object | undefined),
    };
    return Object.keys(values).length === 0 ? {} : { [field]: values };
  };
  const { data: _data, binaryData: _binary, ...rest } = before;
  const map = (field: 'labels' | 'annotations'): object => {
    const values = { ...before.metadata?.[field], ...object.metadata?.[field] };
    return Object.keys(values).length === 0 ? {} : { [field]: values };
  };
  const metadata = { ...before.metadata, ...map('labels'), ...map('annotations') };
  existing.object = { ...rest, metadata, ...merged('data'), ...merged('binaryData') };
  existing.needsHash ||= needsHash;
}

async function generated(
  kind: 'ConfigMap' | 'Secret',
  entry: GeneratorEntry,
  common: GeneratorOptions | undefined,
  read: ReadFile,
): Promise<{ readonly object: AnyObject; readonly needsHash: boolean }> {
  const data: Record<string, string> = {};
  const binaryData: Record<string, string> = {};
  for (const [key, bytes] of await contents(entry, read)) {
    if (Object.hasOwn(data, key) || Object.hasOwn(binaryData, key))
      throw new ClientError(`configmap ${entry.name} illegally repeats the key \`${key}\``);
    if (kind === 'Secret') data[key] = Buffer.from(bytes).toString('base64');
    else
      try {
        data[key] = TEXT.decode(bytes);
      } catch {
        // Content that is not UTF-8 is stored as binary data.
        binaryData[key] = Buffer.from(bytes).toString('base64');
      }
  }
  const labels = { ...common?.labels, ...entry.options?.labels };
  const annotations = { ...common?.annotations, ...entry.options?.annotations };
  const immutable = entry.options?.immutable ?? common?.immutable;
  const object: AnyObject = {
    apiVersion: 'v1',
    kind,
    metadata: {
      name: entry.name,
      ...(entry.namespace === undefined ? {} : { namespace: entry.namespace }),
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    ...(Object.keys(data).length === 0 ? {} : { data }),
    ...(Object.keys(binaryData).length === 0 ? {} : { binaryData }),
    ...(kind === 'Secret' ? { type: entry.type ?? 'Opaque' } : {}),
    ...(immutable === true ? { immutable } : {}),
  };
  const disabled = entry.options?.disableNameSuffixHash ?? common?.disableNameSuffixHash;
  return { object, needsHash: disabled !== true };
}

async function contents(entry: GeneratorEntry, read: ReadFile): Promise<[string, Uint8Array][]> {
  const found: [string, Uint8Array][] = [];
  for (const path of [...(entry.envs ?? []), ...(entry.env === undefined ? [] : [entry.env])])
    for (const line of Buffer.from(await read(path, `loading KV pairs: env source files: [${path}]`))
      .toString('utf8')
      .split('\n')) {
      const text = line.trimStart().replace(/\r$/, '');
      const at = text.indexOf('=');
      if (text !== '' && !text.startsWith('#') && at > 0)
        found.push([text.slice(0, at), Buffer.from(text.slice(at + 1))]);
    }
  for (const source of entry.files ?? []) {
    const [, key, path = source] = /^([^=]+)=(.*)$/.exec(source) ?? [];
    found.push([
      key ?? (path.split('/').at(-1) as string),
      await read(path, `loading KV pairs: file sources: [${entry.files?.join(' ')}]`),
    ]);
  }
  for (const literal of entry.literals ?? []) {
    const at = literal.indexOf('=');
    if (at <= 0) throw new ClientError(`literals: invalid literal source ${literal}, expected key=value`);
    found.push([literal.slice(0, at), Buffer.from(literal.slice(at + 1).replace(/^(['"])(.*)\1$/s, '$2'))]);
  }
  return found;
}
