/** Renders objects in the requested form: as they are, as table rows, or as metadata only. */
import type { KubeObject } from '../../../api/meta/object.ts';
import { ApiError } from '../../../api/meta/status.ts';
import type { KindDefinition } from '../../../api/registry/definition.ts';
import type { AnswerForm } from '../../http/negotiate.ts';
import { bytesAs, type ServedKind } from '../../pipeline/kinds.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import { objectEnvelope, partialEnvelope } from './messages.ts';

/** Rendering of the objects of a list or watch. */
export interface Rendering {
  /** Renders an object. Undefined: the bytes of the object are sent unchanged. */
  readonly object: ((object: CachedObject) => string) | undefined;
}

const DEFAULT_COLUMNS: KindDefinition['columns'] = [
  {
    name: 'Name',
    type: 'string',
    format: 'name',
    description: 'Name must be unique within a namespace.',
    cell: (object) => object.metadata?.name ?? '',
  },
  {
    name: 'Created At',
    type: 'date',
    description: 'CreationTimestamp is the time when this object was created.',
    cell: (object) => object.metadata?.creationTimestamp ?? '',
  },
];

function columnsOf(definition: KindDefinition): KindDefinition['columns'] {
  return definition.columns.length === 0 ? DEFAULT_COLUMNS : definition.columns;
}

type IncludeObject = 'None' | 'Metadata' | 'Object';

export function includeObjectOf(query: URLSearchParams): IncludeObject {
  const value = query.get('includeObject') ?? '';
  if (value === '' || value === 'Metadata') return 'Metadata';
  if (value === 'None' || value === 'Object') return value;
  const shown = JSON.stringify(value.slice(0, 64));
  const expected = "must be 'Metadata', 'Object', 'None', or empty";
  throw new ApiError(
    'BadRequest',
    `Unable to convert to Table as requested: includeObject: Invalid value: ${shown}: ${expected}`,
  );
}

const CLOSING_BRACE = 0x7d;
const metaApiVersion = (form: AnswerForm): string => `meta.k8s.io/${form.version}`;

export function partialObject(object: CachedObject, form: AnswerForm): Buffer {
  const metadata = object.metadataBytes();
  const head = `{"kind":"PartialObjectMetadata","apiVersion":"${metaApiVersion(form)}","metadata":`;
  const bytes = Buffer.allocUnsafe(head.length + metadata.length + 1);
  bytes.write(head, 'latin1');
  metadata.copy(bytes, head.length);
  bytes[bytes.length - 1] = CLOSING_BRACE;
  return bytes;
}

export function columnDefinitions(definition: KindDefinition): string {
  return JSON.stringify(
    columnsOf(definition).map((column) => ({
      name: column.name,
      type: column.type,
      format: column.format ?? '',
      description: column.description,
      priority: column.priority ?? 0,
    })),
  );
}

export interface RowForm {
  readonly form: AnswerForm;
  readonly include: IncludeObject;
  readonly nowMs: number;
}

export function tableRow(kind: ServedKind, object: CachedObject, form: RowForm): string {
  const text = (): string => bytesAs(kind, object).toString('utf8');
  return rowOf(kind.presented, object.parse<KubeObject>(), text, form);
}

/** Like `tableRow`, for an object that is not cached. `text` is its JSON. */
export function rowOf(
  definition: KindDefinition,
  parsed: KubeObject,
  text: () => string,
  { form, include, nowMs }: RowForm,
): string {
  const cells = columnsOf(definition).map((column) => column.cell(parsed, nowMs));
  let row = `{"cells":${JSON.stringify(cells)}`;
  if (include === 'None') row += ',"object":null';
  else if (include === 'Object') row += `,"object":${text()}`;
  else if (include === 'Metadata') {
    const metadata = JSON.stringify(parsed.metadata);
    const type = `"kind":"PartialObjectMetadata","apiVersion":"${metaApiVersion(form)}"`;
    row += `,"object":{${type},"metadata":${metadata}}`;
  }
  return `${row}}`;
}

/** A table of rows. In a watch only the first table has `definitions`. */
export function table(
  form: AnswerForm,
  listMeta: string,
  definitions: string | undefined,
  rows: readonly string[],
): string {
  const type = `"kind":"Table","apiVersion":"${metaApiVersion(form)}"`;
  const columns = `"columnDefinitions":${definitions ?? 'null'}`;
  return `{${type},"metadata":${listMeta},${columns},"rows":[${rows.join(',')}]}`;
}

/** Renders a single object in the requested form. */
export function renderSingle(
  kind: ServedKind,
  object: CachedObject,
  form: AnswerForm,
  query: URLSearchParams,
  nowMs: number,
): Buffer {
  const protobuf = form.format === 'protobuf';
  switch (form.as) {
    case 'object':
      return protobuf ? objectEnvelope(kind, object) : bytesAs(kind, object);
    case 'PartialObjectMetadata':
      return protobuf ? partialEnvelope(form.version, object) : partialObject(object, form);
    case 'Table': {
      const row = tableRow(kind, object, { form, include: includeObjectOf(query), nowMs });
      return Buffer.from(
        table(form, `{"resourceVersion":"${object.revision}"}`, columnDefinitions(kind.presented), [row]),
      );
    }
    default:
      throw new ApiError('NotAcceptable', `you requested ${form.as}, but the requested object is not a list`);
  }
}
