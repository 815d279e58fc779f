/**
 * Parser for the documents of a file-based catalog: packages, channels and bundles. An invalid document results in a
 * message instead of an exception, so that the rest of the catalog can still be used. Source:
 * https://olm.operatorframework.io/docs/reference/file-based-catalogs/.
 */
import { parseRange } from './semver.ts';

/** Key of an API, `group/version/kind`. */
export type GvkKey = string;

export type Constraint =
  | { readonly type: 'package'; readonly name: string; readonly range: string }
  | { readonly type: 'gvk'; readonly gvk: GvkKey }
  /** Requires an operator whose properties satisfy the CEL rule. */
  | { readonly type: 'cel'; readonly rule: string; readonly message: string }
  | { readonly type: 'all' | 'any' | 'none'; readonly of: readonly Constraint[]; readonly message: string };

export interface PackageBlob {
  readonly schema: 'olm.package';
  readonly name: string;
  readonly defaultChannel: string;
}

export interface ChannelEntry {
  readonly name: string;
  readonly replaces: string;
  readonly skips: readonly string[];
  readonly skipRange: string;
}

export interface ChannelBlob {
  readonly schema: 'olm.channel';
  readonly package: string;
  readonly name: string;
  readonly entries: readonly ChannelEntry[];
}

export interface BundleBlob {
  readonly schema: 'olm.bundle';
  readonly package: string;
  readonly name: string;
  readonly image: string;
  readonly version: string;
  readonly provides: readonly GvkKey[];
  readonly requires: readonly Constraint[];
  /** Whether the catalog contains the objects of the bundle. Otherwise they are read from the bundle's image. */
  readonly hasObjects: boolean;
  /** JSON with the properties that have no field in this interface; empty if there are none. */
  readonly otherProperties: string;
}

export type Blob = PackageBlob | ChannelBlob | BundleBlob;

/** Result of parsing a document. Both `blob` and `problem` are unset if the schema of the document is unknown. */
export interface ReadBlob {
  readonly blob?: Blob;
  /** Name of the package that the document belongs to, if known. */
  readonly package?: string;
  readonly problem?: string;
}

const MAX_NAME = 253;
const MAX_ENTRIES = 10_000;
const MAX_PROPERTIES = 1_000;
const MAX_CONSTRAINT_DEPTH = 8;
const MAX_RULE = 8_192;
const MAX_OTHER_PROPERTIES = 64 * 1024;
/**
 * Types of properties that are not in `otherProperties`: they have their own field, or are the content of the bundle.
 */
const READ: ReadonlySet<unknown> = new Set([
  'olm.bundle.object',
  'olm.csv.metadata',
  'olm.package',
  'olm.gvk',
  'olm.package.required',
  'olm.gvk.required',
]);
const NAME = /^[a-zA-Z0-9]([-a-zA-Z0-9._+]*[a-zA-Z0-9])?$/;

type Fields = Readonly<Record<string, unknown>>;

class Wrong extends Error {}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});

export function readBlob(document: unknown): ReadBlob {
  if (!isFields(document)) return { problem: 'a document is not an object' };
  const { schema } = document;
  const owner = schema === 'olm.package' ? textOf(document['name']) : textOf(document['package']);
  const at = owner === '' ? {} : { package: owner };
  try {
    switch (schema) {
      case 'olm.package':
        return { ...at, blob: packageOf(document) };
      case 'olm.channel':
        return { ...at, blob: channelOf(document) };
      case 'olm.bundle':
        return { ...at, blob: bundleOf(document) };
      default:
        return typeof schema === 'string' && schema !== '' ? at : { ...at, problem: 'a document has no schema' };
    }
  } catch (error) {
    if (error instanceof Wrong) return { ...at, problem: error.message };
    throw error;
  }
}

function nameIn(fields: Fields, field: string, what: string): string {
  const name = textOf(fields[field]);
  if (name.length > MAX_NAME || !NAME.test(name))
    throw new Wrong(`${what}: ${field} ${JSON.stringify(name.slice(0, 64))} is not a name`);
  return name;
}

function packageOf(fields: Fields): PackageBlob {
  const name = nameIn(fields, 'name', 'olm.package');
  return {
    schema: 'olm.package',
    name,
    // The default channel is validated later, when all channels of the package are known.
    defaultChannel: textOf(fields['defaultChannel']).slice(0, MAX_NAME),
  };
}

function channelOf(fields: Fields): ChannelBlob {
  const name = nameIn(fields, 'name', 'olm.channel');
  const what = `channel ${name}`;
  const entries = listOf(fields['entries']);
  if (entries.length === 0) throw new Wrong(`${what}: has no entries`);
  if (entries.length > MAX_ENTRIES) throw new Wrong(`${what}: has more than ${MAX_ENTRIES} entries`);
  return {
    schema: 'olm.channel',
    package: nameIn(fields, 'package', what),
    name,
    entries: entries.map((each) => entryOf(fieldsOf(each), what)),
  };
}

function entryOf(fields: Fields, what: string): ChannelEntry {
  const name = nameIn(fields, 'name', what);
  const skipRange = textOf(fields['skipRange']);
  if (skipRange !== '' && parseRange(skipRange) === undefined)
    throw new Wrong(`${what}: skipRange ${JSON.stringify(skipRange.slice(0, 64))} of ${name} is not a version range`);
  const skips = listOf(fields['skips']).map(textOf);
  if (skips.length > MAX_ENTRIES) throw new Wrong(`${what}: ${name} skips more than ${MAX_ENTRIES} versions`);
  return { name, replaces: textOf(fields['replaces']), skips, skipRange };
}

function bundleOf(fields: Fields): BundleBlob {
  const name = nameIn(fields, 'name', 'olm.bundle');
  const what = `bundle ${name}`;
  const owner = nameIn(fields, 'package', what);
  const properties = listOf(fields['properties']);
  if (properties.length > MAX_PROPERTIES) throw new Wrong(`${what}: has more than ${MAX_PROPERTIES} properties`);
  return {
    schema: 'olm.bundle',
    name,
    package: owner,
    image: textOf(fields['image']),
    hasObjects: properties.some((each) => fieldsOf(each)['type'] === 'olm.bundle.object'),
    otherProperties: otherProperties(properties, what),
    ...readProperties(properties, what, owner),
  };
}

function otherProperties(properties: readonly unknown[], what: string): string {
  const others = properties.map(fieldsOf).filter(({ type }) => !READ.has(type));
  if (others.length === 0) return '';
  const text = JSON.stringify(others.map(({ type, value }) => ({ type, value })));
  if (text.length > MAX_OTHER_PROPERTIES)
    throw new Wrong(`${what}: properties are larger than ${MAX_OTHER_PROPERTIES} bytes`);
  return text;
}

export interface BundleProperties {
  readonly version: string;
  readonly provides: readonly GvkKey[];
  readonly requires: readonly Constraint[];
}

/** Parses the properties of a bundle, or the properties in the annotation of an installed version. Throws an Error. */
export function readProperties(properties: readonly unknown[], what: string, owner: string): BundleProperties {
  let version = '';
  const provides: GvkKey[] = [];
  const requires: Constraint[] = [];
  for (const property of properties) {
    const { type, value } = fieldsOf(property);
    const fields = fieldsOf(value);
    switch (type) {
      case 'olm.package':
        if (owner !== '' && textOf(fields['packageName']) !== owner)
          throw new Wrong(`${what}: property olm.package names another package`);
        version = textOf(fields['version']);
        break;
      case 'olm.gvk':
        provides.push(gvkOf(fields));
        break;
      case 'olm.package.required':
      case 'olm.gvk.required':
        requires.push(leafOf(type.slice(4, -'.required'.length), fields, what));
        break;
      case 'olm.constraint':
        requires.push(constraintOf(fields, what, 0));
        break;
      default:
    }
  }
  return { version, provides, requires };
}

const gvkOf = (fields: Fields): GvkKey =>
  `${textOf(fields['group'])}/${textOf(fields['version'])}/${textOf(fields['kind'])}`;

function leafOf(type: string, fields: Fields, what: string): Constraint {
  if (type === 'gvk') return { type, gvk: gvkOf(fields) };
  const name = textOf(fields['packageName']);
  // dependencies.yaml uses the older name `version`.
  const range = textOf(fields['versionRange']) || textOf(fields['version']);
  if (name === '' || parseRange(range) === undefined)
    throw new Wrong(`${what}: requires package ${JSON.stringify(name)} without a valid version range`);
  return { type: 'package', name, range };
}

function constraintOf(fields: Fields, what: string, depth: number): Constraint {
  if (depth > MAX_CONSTRAINT_DEPTH) throw new Wrong(`${what}: constraints are nested too deeply`);
  const message = textOf(fields['failureMessage']);
  for (const type of ['all', 'any', 'none', 'not'] as const) {
    if (fields[type] === undefined) continue;
    const of = listOf(fieldsOf(fields[type])['constraints']).map((each) =>
      constraintOf(fieldsOf(each), what, depth + 1),
    );
    if (of.length === 0) throw new Wrong(`${what}: constraint ${type} is empty`);
    return { type: type === 'not' ? 'none' : type, of, message };
  }
  if (fields['package'] !== undefined) return leafOf('package', fieldsOf(fields['package']), what);
  if (fields['gvk'] !== undefined) return leafOf('gvk', fieldsOf(fields['gvk']), what);
  if (fields['cel'] !== undefined) {
    const rule = textOf(fieldsOf(fields['cel'])['rule']);
    if (rule.trim() === '' || rule.length > MAX_RULE)
      throw new Wrong(`${what}: constraint cel has no rule of at most ${MAX_RULE} characters`);
    return { type: 'cel', rule, message };
  }
  // An unknown constraint must not be ignored, because its author may have excluded this version from the cluster.
  throw new Wrong(`${what}: constraint ${Object.keys(fields).sort().join(', ').slice(0, 64)} is not supported`);
}
