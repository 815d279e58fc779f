/**
 * Help for fields of manifests from `/openapi/v3`. Each document is requested when a manifest first needs it, and
 * cached.
 */
import { BoundedMap } from '../../../base/bounded-map.ts';
import type { Api } from '../api/api.ts';
import { fieldAt, textAt } from '../api/resources.ts';
import type { YamlPosition } from './yaml-path.ts';

const MAX_DOCUMENTS = 20;
const MAX_DEPTH = 30;
const PREFIX = '/openapi/v3/';

export interface FieldHelp {
  /** Path such as `spec.replicas`; the kind for the object itself. */
  readonly path: string;
  readonly type: string;
  readonly description: string;
  readonly fields: readonly FieldSummary[];
  /** Values that the field may have. */
  readonly values: readonly string[];
}

export interface FieldSummary {
  readonly name: string;
  readonly type: string;
  readonly description: string;
  readonly isRequired: boolean;
}

type Schemas = Readonly<Record<string, unknown>>;

export class SchemaHelp {
  readonly #api: Api;
  #paths: Promise<Readonly<Record<string, unknown>>> | undefined;
  readonly #documents = new BoundedMap<string, Promise<Schemas>>(MAX_DOCUMENTS);

  constructor(api: Api) {
    this.#api = api;
  }

  /**
   * Help for the object that contains a position, with its fields. Undefined if the server has no schema for the
   * object.
   */
  around(position: YamlPosition): Promise<FieldHelp | undefined> {
    return this.#help(position, position.parents);
  }

  /** Help for the key at a position. */
  field(position: YamlPosition): Promise<FieldHelp | undefined> {
    return position.key === '' ? Promise.resolve(undefined) : this.#help(position, [...position.parents, position.key]);
  }

  async #help({ apiVersion, kind }: YamlPosition, path: readonly string[]): Promise<FieldHelp | undefined> {
    if (apiVersion === '' || kind === '') return undefined;
    const schemas = await this.#document(apiVersion);
    let schema = rootOf(schemas, apiVersion, kind);
    let description = textAt(schema, 'description');
    for (const name of path) {
      const field = fieldOf(schemas, schema, name);
      if (field === undefined) return undefined;
      schema = resolved(schemas, field);
      description = textAt(field, 'description') || textAt(schema, 'description');
    }
    if (schema === undefined) return undefined;
    const inner = itemOf(schemas, schema);
    const values = fieldAt(inner, 'enum');
    return {
      path: path.length === 0 ? kind : path.join('.'),
      type: typeText(schemas, schema),
      description,
      fields: fieldsOf(schemas, inner),
      values: Array.isArray(values) ? values.map(String) : textAt(inner, 'type') === 'boolean' ? ['true', 'false'] : [],
    };
  }

  async #document(apiVersion: string): Promise<Schemas> {
    const key = apiVersion.includes('/') ? `apis/${apiVersion}` : `api/${apiVersion}`;
    let document = this.#documents.get(key);
    if (document === undefined) {
      document = this.#read(key);
      this.#documents.set(key, document);
    }
    return document;
  }

  async #read(key: string): Promise<Schemas> {
    try {
      this.#paths ??= this.#api
        .json<{ readonly paths?: Readonly<Record<string, unknown>> }>('/openapi/v3')
        .then(({ paths = {} }) => paths);
      const url = textAt(await this.#paths, key, 'serverRelativeURL');
      if (!url.startsWith(PREFIX)) return {};
      const schemas = fieldAt(await this.#api.json<unknown>(url), 'components', 'schemas');
      return typeof schemas === 'object' && schemas !== null ? (schemas as Schemas) : {};
    } catch {
      // Help is optional, so the error is dropped. The next manifest repeats the request.
      this.#paths = undefined;
      return {};
    }
  }
}

function rootOf(schemas: Schemas, apiVersion: string, kind: string): unknown {
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/', 2) : ['', apiVersion];
  return Object.values(schemas).find((schema) => {
    const kinds = fieldAt(schema, 'x-kubernetes-group-version-kind');
    return (
      Array.isArray(kinds) &&
      kinds.length === 1 &&
      kinds.some(
        (each: unknown) =>
          textAt(each, 'group') === group && textAt(each, 'version') === version && textAt(each, 'kind') === kind,
      )
    );
  });
}

/** Follows references until a schema without a reference is found. */
function resolved(schemas: Schemas, schema: unknown): unknown {
  let current = schema;
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    const reference = textAt(current, '$ref') || textAt(current, 'allOf', 0, '$ref');
    if (reference === '') return current;
    current = fieldAt(schemas, reference.slice('#/components/schemas/'.length));
  }
  return undefined;
}

/** The schema of the items for a list; otherwise the schema itself. */
function itemOf(schemas: Schemas, schema: unknown): unknown {
  let current = resolved(schemas, schema);
  for (let depth = 0; depth < MAX_DEPTH && fieldAt(current, 'items') !== undefined; depth++)
    current = resolved(schemas, fieldAt(current, 'items'));
  return current;
}

function fieldOf(schemas: Schemas, schema: unknown, name: string): unknown {
  const inner = itemOf(schemas, schema);
  const others = fieldAt(inner, 'additionalProperties');
  return fieldAt(inner, 'properties', name) ?? (typeof others === 'object' ? others : undefined);
}

function fieldsOf(schemas: Schemas, schema: unknown): readonly FieldSummary[] {
  const properties = fieldAt(schema, 'properties');
  const required = fieldAt(schema, 'required');
  const isRequired = (name: string): boolean => Array.isArray(required) && required.includes(name);
  return typeof properties !== 'object' || properties === null
    ? []
    : Object.entries(properties).map(([name, field]) => ({
        name,
        type: typeText(schemas, field),
        description: textAt(field, 'description') || textAt(resolved(schemas, field), 'description'),
        isRequired: isRequired(name),
      }));
}

function typeText(schemas: Schemas, schema: unknown, depth = 0): string {
  const inner = resolved(schemas, schema);
  const type = textAt(inner, 'type');
  if (depth > 3) return type;
  if (type === 'array') return `list of ${typeText(schemas, fieldAt(inner, 'items'), depth + 1)}`;
  const others = fieldAt(inner, 'additionalProperties');
  if (typeof others === 'object') return `map of ${typeText(schemas, others, depth + 1)}`;
  if (fieldAt(inner, 'x-kubernetes-int-or-string') === true || textAt(inner, 'format') === 'int-or-string')
    return 'integer or string';
  return type === '' ? 'value' : type;
}
