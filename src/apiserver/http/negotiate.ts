/**
 * Content negotiation: the form of a response that the client accepts. Source:
 * k8s.io/apiserver/pkg/endpoints/handlers/negotiation and the Table and PartialObjectMetadata transforms.
 */

import { ApiError } from '../../api/meta/status.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import { PROTOBUF } from './protobuf/field-table.ts';

export interface AnswerForm {
  readonly format: 'json' | 'yaml' | 'protobuf';
  /** Kind of the response. 'object': the object itself. */
  readonly as: 'object' | 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList' | 'APIGroupDiscoveryList';
  /** Version of meta.k8s.io (`v1`, `v1beta1`) or apidiscovery.k8s.io (`v2`, `v2beta1`); '' for 'object'. */
  readonly version: string;
}

const PLAIN: AnswerForm = { format: 'json', as: 'object', version: '' };
const YAML: AnswerForm = { format: 'yaml', as: 'object', version: '' };
const MESSAGE: AnswerForm = { format: 'protobuf', as: 'object', version: '' };
const MAX_ACCEPT = 4096;
const MAX_MEMO = 256;
type Memo = BoundedMap<string, AnswerForm | null>;
const memos: { readonly [tables in 'withTables' | 'without']: { readonly protobuf: Memo; readonly other: Memo } } = {
  withTables: { protobuf: new BoundedMap(MAX_MEMO), other: new BoundedMap(MAX_MEMO) },
  without: { protobuf: new BoundedMap(MAX_MEMO), other: new BoundedMap(MAX_MEMO) },
};

/**
 * Form of an object: the first acceptable one in the client's order of preference. `protobuf`: the kind has a protobuf
 * form; metadata alone always has a protobuf form. Throws 'NotAcceptable'.
 */
export function negotiate(accept: string | undefined, { protobuf }: { readonly protobuf: boolean }): AnswerForm {
  return chooseForm(accept, { protobuf, tables: 'withTables', streams: false });
}

/** Like `negotiate`, for kinds without storage, which have no table columns. */
export function negotiateWithoutTable(
  accept: string | undefined,
  { protobuf }: { readonly protobuf: boolean },
): AnswerForm {
  return chooseForm(accept, { protobuf, tables: 'without', streams: false });
}

/** Like `negotiate`, for a list, whose path also supports watches. */
export function negotiateList(accept: string | undefined, { protobuf }: { readonly protobuf: boolean }): AnswerForm {
  return chooseForm(accept, { protobuf, tables: 'withTables', streams: true });
}

interface AcceptableForms {
  readonly protobuf: boolean;
  readonly tables: keyof typeof memos;
  /** Errors list the media types of watches too. */
  readonly streams: boolean;
}

function chooseForm(accept: string | undefined, { protobuf, tables, streams }: AcceptableForms): AnswerForm {
  if (accept === undefined || accept === '' || accept === '*/*' || accept === 'application/json') return PLAIN;
  if (accept.length > MAX_ACCEPT) throw notAcceptable('', protobuf, streams);
  const memo = memos[tables][protobuf ? 'protobuf' : 'other'];
  let form = memo.get(accept);
  if (form === undefined) {
    form = parse(accept, protobuf, tables === 'withTables');
    memo.set(accept, form);
  }
  if (form === null) throw notAcceptable(accept, protobuf, streams);
  return form;
}

const TYPES = ['application/json', 'application/yaml', PROTOBUF];
const STREAM_TYPES = ['application/json;stream=watch', `${PROTOBUF};stream=watch`];

/**
 * Error for a request without an acceptable form. Upstream's routes of built-in kinds reject unknown media types before
 * parameters are parsed; `protobuf` is true for those kinds. Source: emicklei/go-restful, jsr311.go;
 * k8s.io/apiserver/pkg/server (serviceErrorHandler).
 */
function notAcceptable(accept: string, protobuf: boolean, streams: boolean): ApiError {
  const bare = accept.split(',').map((clause) => clause.split(';', 1)[0]?.trim());
  if (protobuf && !bare.some((type) => type === '*/*' || TYPES.includes(type ?? ''))) {
    const available = streams ? [...TYPES, ...STREAM_TYPES] : TYPES;
    const message = `406: Not Acceptable\n\nAvailable representations: ${available.join(', ')}`;
    return new ApiError('NotAcceptable', message, {});
  }
  return new ApiError(
    'NotAcceptable',
    `only the following media types are accepted: application/json, application/yaml${protobuf ? `, ${PROTOBUF}` : ''}`,
  );
}

/** Like `negotiate`, for watches, which cannot be YAML. */
export function negotiateStream(accept: string | undefined, { protobuf }: { readonly protobuf: boolean }): AnswerForm {
  const clauses = accept?.slice(0, MAX_ACCEPT).split(',') ?? [];
  const spoken = clauses.filter((each) => !each.trim().toLowerCase().startsWith('application/yaml'));
  const refusal = new ApiError(
    'NotAcceptable',
    `only the following media types are accepted: ${STREAM_TYPES.join(', ')}`,
  );
  if (spoken.length === 0 && clauses.length > 0) throw refusal;
  try {
    return negotiateList(spoken.length === clauses.length ? accept : spoken.join(','), { protobuf });
  } catch (error) {
    // If the client also accepts YAML, the error lists the media types of watches. Otherwise it is that of `negotiate`.
    const isOwn = spoken.length < clauses.length && error instanceof ApiError && error.reason === 'NotAcceptable';
    throw isOwn ? refusal : error;
  }
}

function parse(accept: string, protobuf: boolean, tables: boolean): AnswerForm | null {
  const clauses = accept
    .split(',')
    .map((text, position) => ({ ...clauseOf(text), position }))
    .filter((clause) => clause.quality > 0)
    .sort((a, b) => b.quality - a.quality || a.position - b.position);
  for (const clause of clauses) {
    const form = formOf(clause.type, clause.parameters, protobuf);
    if (form !== undefined && (tables || form.as !== 'Table')) return form;
  }
  return null;
}

function clauseOf(text: string): { type: string; parameters: Map<string, string>; quality: number } {
  const [type = '', ...rest] = text.split(';');
  const parameters = new Map<string, string>();
  for (const each of rest) {
    const equals = each.indexOf('=');
    if (equals > 0)
      parameters.set(
        each.slice(0, equals).trim(),
        each
          .slice(equals + 1)
          .trim()
          .replaceAll('"', ''),
      );
  }
  const quality = Number(parameters.get('q') ?? '1');
  return { type: type.trim().toLowerCase(), parameters, quality: Number.isFinite(quality) ? quality : 1 };
}

function formOf(type: string, parameters: ReadonlyMap<string, string>, protobuf: boolean): AnswerForm | undefined {
  // `g` and `v` are meaningless without `as`.
  if (!parameters.has('as') && (parameters.has('g') || parameters.has('v'))) return undefined;
  if (type === PROTOBUF) return messageForm(parameters, protobuf);
  const isYaml = type === 'application/yaml';
  if (!isYaml && type !== 'application/json' && type !== '*/*' && type !== 'application/*') return undefined;
  const as = parameters.get('as');
  if (as === undefined) return isYaml ? YAML : PLAIN;
  const version = parameters.get('v') ?? '';
  const group = parameters.get('g');
  if (as === 'Table' || as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList') {
    if (group !== 'meta.k8s.io' || (version !== 'v1' && version !== 'v1beta1')) return undefined;
    return { format: isYaml ? 'yaml' : 'json', as, version };
  }
  if (as === 'APIGroupDiscoveryList' && !isYaml) {
    if (group !== 'apidiscovery.k8s.io' || (version !== 'v2' && version !== 'v2beta1')) return undefined;
    return { format: 'json', as, version };
  }
  return undefined;
}

/** Tables have no protobuf form, as in upstream. */
function messageForm(parameters: ReadonlyMap<string, string>, protobuf: boolean): AnswerForm | undefined {
  const as = parameters.get('as');
  if (as === undefined) return protobuf ? MESSAGE : undefined;
  if (as !== 'PartialObjectMetadata' && as !== 'PartialObjectMetadataList') return undefined;
  const version = parameters.get('v') ?? '';
  if (parameters.get('g') !== 'meta.k8s.io' || (version !== 'v1' && version !== 'v1beta1')) return undefined;
  return { format: 'protobuf', as, version };
}
