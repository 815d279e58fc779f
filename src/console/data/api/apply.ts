/** Server-side apply with dry run, conflicts and validation errors. */
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { type ApiError, isApiError, type StatusCause } from '../../../api/meta/status.ts';
import { objectPath, query } from '../../../client/resource-path.ts';
import type { Api } from './api.ts';

export const FIELD_MANAGER = 'hyperedge-console';
const APPLY = 'application/apply-patch+yaml';

export interface FieldConflict {
  readonly manager: string;
  readonly field: string;
}

export type ApplyResult =
  | { readonly outcome: 'applied'; readonly object: KubeObject }
  | { readonly outcome: 'conflict'; readonly conflicts: readonly FieldConflict[]; readonly message: string }
  | { readonly outcome: 'invalid'; readonly causes: readonly StatusCause[]; readonly message: string };

export interface ApplyOptions {
  readonly dryRun?: boolean;
  /** Whether the fields that other managers own are taken over. */
  readonly force?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * Applies a manifest. Conflicts and validation errors are part of the result; other failures are thrown as ApiError.
 */
export async function applyManifest(
  api: Api,
  type: ResourceType,
  manifest: KubeObject,
  options: ApplyOptions = {},
): Promise<ApplyResult> {
  const { name, namespace } = manifest.metadata ?? {};
  const path =
    objectPath(type, name, namespace) +
    query({
      fieldManager: FIELD_MANAGER,
      fieldValidation: 'Strict',
      dryRun: options.dryRun === true ? 'All' : undefined,
      force: options.force === true ? true : undefined,
    });
  const body = JSON.stringify(withoutServerFields(manifest));
  try {
    const object = await api.json<KubeObject>(path, {
      method: 'PATCH',
      body,
      contentType: APPLY,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    return { outcome: 'applied', object };
  } catch (error) {
    if (isApiError(error, 'Conflict')) {
      const conflicts = (error.details?.causes ?? [])
        .filter(({ reason }) => reason === 'FieldManagerConflict')
        .map(({ message = '', field = '' }) => ({ manager: /"([^"]*)"/.exec(message)?.[1] ?? message, field }));
      if (conflicts.length > 0) return { outcome: 'conflict', conflicts, message: error.message };
    }
    if (isApiError(error, 'Invalid') || isApiError(error, 'BadRequest') || isUntyped(error))
      return { outcome: 'invalid', causes: error.details?.causes ?? [], message: error.message };
    throw error;
  }
}

const UNTYPED = 'failed to create typed patch object';
/**
 * Whether server-side apply rejected an object that does not fit the schema. Such an error has no specific reason, so
 * the message is compared.
 */
const isUntyped = (error: unknown): error is ApiError => isApiError(error) && error.message.startsWith(UNTYPED);
const UNTYPED_FIELD = /^failed to create typed patch object \([^)]*\): \.([^:]+): (.*)$/;

export interface PlacedProblem {
  /** Line of the problem, counted from 1; undefined if the text does not contain the field. */
  readonly line: number | undefined;
  readonly message: string;
}

const FIELD_OF_MESSAGE = /(?:unknown|duplicate) field "([^"]+)"/g;

/** Errors of an invalid object, with the lines of its text. `first` is the line at which the text begins. */
export function placedProblems(
  { causes, message }: { readonly causes: readonly StatusCause[]; readonly message: string },
  text: string,
  first: number,
): readonly PlacedProblem[] {
  const place = (field: string): number | undefined => {
    const line = field === '' ? undefined : lineOfField(text, field);
    return line === undefined ? undefined : line + first - 1;
  };
  if (causes.length > 0)
    return causes.map(({ field = '', message: each = '' }) => ({ line: place(field), message: `${field}: ${each}` }));
  const [, path, problem] = UNTYPED_FIELD.exec(message) ?? [];
  if (path !== undefined && problem !== undefined)
    // The server names items of a list by their keys. The line of the list is used for them.
    return [{ line: place(path.replace(/\[(?!\d+\]).*$/, '')), message: `${path}: ${problem}` }];
  const fields = [...message.matchAll(FIELD_OF_MESSAGE)];
  return fields.length === 0
    ? [{ line: undefined, message }]
    : fields.map(([each, field = '']) => ({ line: place(field), message: each }));
}

/** A copy without the fields that the server owns. Server-side apply rejects managed fields. */
export function withoutServerFields(object: KubeObject): KubeObject {
  const { status: _status, ...rest } = object as KubeObject & { readonly status?: unknown };
  const {
    managedFields: _fields,
    resourceVersion: _version,
    uid: _uid,
    creationTimestamp: _created,
    generation: _generation,
    selfLink: _link,
    ...metadata
  } = object.metadata ?? {};
  return { ...rest, metadata };
}

/** Line of a field path in YAML text, counted from 1; undefined if the field is not found. */
export function lineOfField(yaml: string, field: string): number | undefined {
  const steps = field
    .replaceAll(/\[(\d+)\]/g, '.#$1')
    .split('.')
    .filter(Boolean);
  const lines = yaml.split('\n');
  let line = 0;
  let indent = -1;
  let found: number | undefined;
  for (const step of steps) {
    const item = /^#(\d+)$/.exec(step);
    let seen = -1;
    let at: number | undefined;
    for (let index = line; index < lines.length; index++) {
      const text = lines[index] ?? '';
      const width = text.search(/\S/);
      if (width < 0 || text.trimStart().startsWith('#')) continue;
      const isItem = /^\s*-(?:\s|$)/.test(text);
      if (index > line && width < indent) break;
      if (index > line && width === indent && !isItem) break;
      if (item !== null ? isItem && ++seen === Number(item[1]) : keyOf(text) === step) {
        at = index;
        break;
      }
    }
    if (at === undefined) return found === undefined ? undefined : found + 1;
    found = at;
    // The first key of a list item may be on the line of the item's dash.
    line = item === null ? at + 1 : at;
    indent = (lines[at] ?? '').search(/\S/);
    if (item === null) indent = Math.max(indent, 0);
  }
  return found === undefined ? undefined : found + 1;
}

const keyOf = (line: string): string | undefined => /^\s*(?:-\s+)*["']?([^"':#]+)["']?\s*:(?:\s|$)/.exec(line)?.[1];
