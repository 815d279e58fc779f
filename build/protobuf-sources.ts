/** Parser for messages in the sources of k8s.io: `generated.proto` and the struct tags of `types.go`. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface SourceField {
  /** JSON name of the field; '' if the fields of its message are inlined in JSON. */
  readonly name: string;
  readonly number: number;
  readonly repeated: boolean;
  /** Scalar type, or full name of a message. */
  readonly type: string;
  /** Whether the field is a map with string keys; `type` is the type of its values. */
  readonly isMap: boolean;
  /** Whether JSON omits a zero value. */
  readonly omitZero: boolean;
}

const SCALARS = new Set(['string', 'bytes', 'int32', 'int64', 'bool', 'double']);

/** All messages below `root`, by the name of their type in the schemas. */
export function readSources(root: string): Map<string, readonly SourceField[]> {
  const found = new Map<string, readonly SourceField[]>();
  for (const each of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    if (!each.endsWith('/generated.proto')) continue;
    const directory = join(root, each, '..');
    const tags = tagsOf(directory);
    for (const [name, fields] of readProto(readFileSync(join(root, each), 'utf8'), tags)) found.set(name, fields);
  }
  return found;
}

interface Tag {
  readonly name: string;
  readonly omitZero: boolean;
}

/** Struct tags of a package. The keys have the form `Struct NUMBER`. */
function tagsOf(directory: string): ReadonlyMap<string, Tag> {
  const tags = new Map<string, Tag>();
  for (const file of readdirSync(directory)) {
    if (!file.endsWith('.go') || file.startsWith('zz_') || file.endsWith('_test.go') || file.startsWith('generated'))
      continue;
    const source = readFileSync(join(directory, file), 'utf8');
    for (const [, structure = '', body = ''] of source.matchAll(/^type (\w+) struct \{\n([\s\S]*?)^\}/gm)) {
      for (const line of body.split('\n')) {
        const match = /^\s*(?:\w+\s+)?(\S+)\s+`.*?json:"([^"]*)".*? protobuf:"\w+,(\d+)/.exec(line);
        if (match === null) continue;
        const [, type = '', json = '', number = ''] = match;
        const [name = '', ...options] = json.split(',');
        tags.set(`${structure} ${number}`, {
          name,
          omitZero: !type.startsWith('*') && (options.includes('omitempty') || options.includes('omitzero')),
        });
      }
    }
  }
  return tags;
}

function* readProto(source: string, tags: ReadonlyMap<string, Tag>): Generator<[string, readonly SourceField[]]> {
  const scope = /^package (\S+);/m.exec(source)?.[1] ?? '';
  for (const [, message = '', body = ''] of source.matchAll(/^message (\w+) \{\n([\s\S]*?)^\}/gm)) {
    const fields: SourceField[] = [];
    for (const line of body.split('\n')) {
      const match = /^ {2}(optional|repeated|map)(?: |<string, )([\w.]+)>? (\w+) = (\d+)/.exec(line);
      if (match === null) continue;
      const [, label = '', type = '', protoName = '', number = ''] = match;
      const tag = tags.get(`${message} ${number}`) ?? { name: protoName, omitZero: false };
      fields.push({
        name: tag.name,
        number: Number(number),
        repeated: label === 'repeated',
        type: SCALARS.has(type) ? type : schemaName(/^\.?k8s\.io\./.test(type) ? type : `${scope}.${type}`),
        isMap: label === 'map',
        omitZero: label === 'optional' && SCALARS.has(type) && tag.omitZero,
      });
    }
    yield [schemaName(`${scope}.${message}`), fields];
  }
}

/** Name of a type in the schemas: `io.k8s.api.core.v1.Pod` for `.k8s.io.api.core.v1.Pod`. */
const schemaName = (name: string): string =>
  name.replace(/^\.?k8s\.io\./, 'io.k8s.').replace(/^io\.k8s\.kubernetes\.vendor\.k8s\.io\./, 'io.k8s.');
