/**
 * Extracts protobuf field numbers of the Kubernetes API from any program that carries them: every client-go program does (kubectl
 * for one), as gzipped file descriptors. Reads what is reachable from the kinds this project serves and writes
 * `src/components/apiserver/http/protobuf/generated/messages.ts`. Run when kinds are added:
 *
 *   node build/extract-protobuf-fields.ts /usr/bin/kubectl
 *
 * Field of a message in the table: `NUMBER NAME CODE`, joined by `;`. CODE is `s` text, `y` bytes, `i` integer, `b` boolean,
 * `d` double, `m` and a message's index, prefixed with `*` when repeated, `%` for a map with text keys, `>` for a structure
 * whose fields JSON shows as those of its parent.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { inflateRawSync } from 'node:zlib';
import { Reader } from '../src/api/etcd/wire.ts';
import { builtinKinds, subresourceKinds } from '../src/api/registry/index.ts';
import { typeOf } from '../src/api/schema/index.ts';

const MAGIC = Buffer.from([0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00]);
const GZIP_HEADER = 10;
const MAX_DESCRIPTOR = 1 << 20;
/** gogoproto.nullable: false says that the Go field is no pointer, so that its zero value is its absence. */
const NULLABLE = 65001;
const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
/** Answered by hand: JSON shows them as something other than a structure. */
const SPECIAL = new Set([
  `${META}.Time`,
  `${META}.MicroTime`,
  `${META}.FieldsV1`,
  `${META}.Verbs`,
  'io.k8s.apimachinery.pkg.api.resource.Quantity',
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString',
  'io.k8s.apimachinery.pkg.runtime.RawExtension',
  'io.k8s.api.authentication.v1.ExtraValue',
  'io.k8s.api.authorization.v1.ExtraValue',
  'io.k8s.api.certificates.v1.ExtraValue',
  'io.k8s.api.authentication.v1beta1.ExtraValue',
  'io.k8s.api.authorization.v1beta1.ExtraValue',
  'io.k8s.api.certificates.v1beta1.ExtraValue',
]);

interface Field {
  name: string;
  number: number;
  repeated: boolean;
  type: number;
  typeName: string;
  nullable: boolean;
}

interface Message {
  readonly fields: Field[];
  readonly isMapEntry: boolean;
}

const messages = new Map<string, Message>();

/** `.k8s.io.api.core.v1.Pod` → `io.k8s.api.core.v1.Pod` */
const schemaName = (name: string): string =>
  name.replace(/^\.?k8s\.io\./, 'io.k8s.').replace(/^io\.k8s\.kubernetes\.vendor\.k8s\.io\./, 'io.k8s.');

function readField(bytes: Uint8Array): Field {
  const field: Field = { name: '', number: 0, repeated: false, type: 0, typeName: '', nullable: true };
  const reader = new Reader(bytes);
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === 1) field.name = reader.string();
    else if (key === 3) field.number = reader.int();
    else if (key === 4) field.repeated = reader.int() === 3;
    else if (key === 5) field.type = reader.int();
    else if (key === 6) field.typeName = schemaName(reader.string());
    else if (key === 8) field.nullable = readNullable(reader.bytes());
    else reader.skip();
  }
  return field;
}

function readNullable(options: Uint8Array): boolean {
  const reader = new Reader(options);
  let nullable = true;
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === NULLABLE) nullable = reader.bool();
    else reader.skip();
  }
  return nullable;
}

function readMessage(bytes: Uint8Array, scope: string): void {
  const fields: Field[] = [];
  const nested: Uint8Array[] = [];
  let name = '';
  let isMapEntry = false;
  const reader = new Reader(bytes);
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === 1) name = reader.string();
    else if (key === 2) fields.push(readField(reader.bytes()));
    else if (key === 3) nested.push(reader.bytes());
    else if (key === 7) {
      const options = new Reader(reader.bytes());
      for (let option = options.field(); option !== 0; option = options.field()) {
        if (option === 7) isMapEntry = options.bool();
        else options.skip();
      }
    } else reader.skip();
  }
  const full = `${scope}.${name}`;
  messages.set(full, { fields, isMapEntry });
  for (const each of nested) readMessage(each, full);
}

function readFile(bytes: Uint8Array): void {
  const found: Uint8Array[] = [];
  let scope = '';
  const reader = new Reader(bytes);
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === 2) scope = schemaName(reader.string());
    else if (key === 4) found.push(reader.bytes());
    else reader.skip();
  }
  for (const each of found) readMessage(each, scope);
}

const program = process.argv[2];
if (program === undefined) throw new Error('usage: extract-protobuf-fields.ts PROGRAM');
const bytes = readFileSync(program);
for (let at = bytes.indexOf(MAGIC); at >= 0; at = bytes.indexOf(MAGIC, at + 8)) {
  try {
    // One member only: descriptors stand next to each other.
    const descriptor = inflateRawSync(bytes.subarray(at + GZIP_HEADER, at + MAX_DESCRIPTOR));
    if (descriptor.subarray(0, 128).includes('k8s.io/')) readFile(descriptor);
  } catch {
    // Other compressed data of the program.
  }
}

const VERSION = /\.(v\d+(?:(?:alpha|beta)\d+)?)\.(?=\w+$)/;

/** A version that is newer than the program has the numbers of the one that it grew out of: upstream never gives a number a second meaning. */
function messageOf(name: string): Message | undefined {
  const own = messages.get(name);
  if (own !== undefined) return own;
  for (const older of ['v1beta1', 'v1alpha1']) {
    const from = name.replace(VERSION, `.${older}.`);
    const message = messages.get(from);
    if (message === undefined) continue;
    const [scope = ''] = from.split(VERSION);
    const [, version = ''] = VERSION.exec(name) ?? [];
    const typeName = (text: string): string =>
      text.startsWith(`${scope}.${older}.`) ? text.replace(VERSION, `.${version}.`) : text;
    return { ...message, fields: message.fields.map((each) => ({ ...each, typeName: typeName(each.typeName) })) };
  }
  return undefined;
}

const SCALARS: Readonly<Record<number, string>> = { 1: 'd', 3: 'i', 5: 'i', 8: 'b', 9: 's', 12: 'y' };
const order: string[] = [];
const indexOf = (name: string): number => {
  const known = order.indexOf(name);
  return known >= 0 ? known : order.push(name) - 1;
};

function code(field: Field, owner: string | undefined): string {
  const prefix = field.repeated ? '*' : '';
  if (field.type !== 11) {
    const absentWhenZero = !field.repeated && !field.nullable ? '!' : '';
    return prefix + (SCALARS[field.type] ?? '?') + absentWhenZero;
  }
  const entry = messageOf(field.typeName);
  if (entry?.isMapEntry === true) {
    const value = entry.fields.find((each) => each.number === 2);
    return value === undefined ? '?' : `%${code(value, undefined)}`;
  }
  // Older versions embed what the stable one does.
  const shown = owner === undefined ? undefined : (typeOf(owner) ?? typeOf(owner.replace(/v\d+beta\d+/, 'v1')));
  const inline = !field.repeated && shown !== undefined && !Object.hasOwn(shown.f, jsonName(owner ?? '', field.name));
  return `${prefix}${inline ? '>' : 'm'}${indexOf(field.typeName)}`;
}

/** Protobuf spells some fields otherwise than JSON: `Webhooks`, `aPIGroup`. */
function jsonName(owner: string, name: string): string {
  const fields = Object.keys((typeOf(owner) ?? typeOf(owner.replace(/v\d+beta\d+/, 'v1')))?.f ?? {});
  if (fields.includes(name)) return name;
  return fields.find((each) => each.toLowerCase() === name.toLowerCase()) ?? name;
}

for (const kind of [...builtinKinds, ...subresourceKinds]) {
  // Schemas of custom resources are called otherwise in JSON than in protobuf; they travel as JSON.
  if (kind.group === 'apiextensions.k8s.io') continue;
  indexOf(kind.schemaName);
  for (const alias of kind.aliases ?? []) {
    const pkg = alias.group === '' ? 'core' : (alias.group.split('.')[0] ?? '');
    indexOf(`io.k8s.api.${pkg}.${alias.version}.${kind.kind}`);
  }
}
for (const name of [
  'APIGroup',
  'APIGroupList',
  'APIResourceList',
  'APIVersions',
  'DeleteOptions',
  'ListMeta',
  'PartialObjectMetadata',
  'Status',
]) {
  indexOf(`${META}.${name}`);
}
const rows: string[] = [];
for (let index = 0; index < order.length; index++) {
  const name = order[index] ?? '';
  const message = messageOf(name);
  if (message === undefined && !SPECIAL.has(name)) console.error(`not in the program: ${name}`);
  const fields = SPECIAL.has(name) ? [] : (message?.fields ?? []);
  rows.push(
    `  '${name}': '${fields.map((field) => `${field.number} ${jsonName(name, field.name)} ${code(field, name)}`).join(';')}',`,
  );
}
const target = fileURLToPath(
  new URL('../src/components/apiserver/http/protobuf/generated/messages.ts', import.meta.url),
);
writeFileSync(
  target,
  `// Generated by build/extract-protobuf-fields.ts; do not edit.\n/** Fields of messages; a message's index is its place. */\nexport const MESSAGES: Readonly<Record<string, string>> = {\n${rows.join('\n')}\n};\n`,
);
execFileSync(process.execPath, ['--check', target]);
