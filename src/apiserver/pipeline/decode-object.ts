/** Decodes request documents to objects of a kind: type information, schema and field validation. */
import { fieldError, invalid } from '../../api/meta/field-error.ts';
import type { JsonObject, KubeObject, ObjectMeta } from '../../api/meta/object.ts';
import { ApiError, errors } from '../../api/meta/status.ts';
import { kindByGvk } from '../../api/registry/index.ts';
import { pruneAndCheck } from '../../api/schema/decode.ts';
import type { ObjectNode } from '../../api/schema/node.ts';
import type { ServedKind } from './kinds.ts';
import type { WriteOptions } from './write-options.ts';
import type { Mutable } from './write-request.ts';

export const MAX_SHOWN = 253;

/** Text of a value for a message. Does not call `toString`, which may be any value in a decoded document. */
export function shownText(value: unknown): string {
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, MAX_SHOWN);
}

/** The parts of a kind that decoding needs. */
export type DecodedKind = Pick<ServedKind, 'apiVersion' | 'kind' | 'schema'> & Partial<Pick<ServedKind, 'definition'>>;

/** Error: a field has a value of the wrong type. */
export class WrongType extends ApiError {
  /** Message in the wording of upstream's JSON decoder. */
  readonly decoding: string;
  /** Message in the wording of upstream's unstructured converter. */
  readonly conversion: string;

  constructor({ apiVersion, kind }: DecodedKind, decoding: string, conversion: string) {
    const version = JSON.stringify(apiVersion.split('/').at(-1));
    super('BadRequest', `${kind} in version ${version} cannot be handled as a ${kind}: ${decoding}`);
    this.decoding = decoding;
    this.conversion = conversion;
  }
}

/** Error of strict field validation: unknown or duplicate fields. */
export class StrictError extends ApiError {
  constructor(message: string) {
    super('BadRequest', message);
  }
}

/**
 * Like `decodeObject`, for request bodies. As upstream, errors about fields of a body name the kind; errors about
 * fields of a patch result do not.
 */
export function decodeSent(sent: DecodedKind, document: JsonObject, options: DecodeOptions): KubeObject {
  try {
    return decodeObject(sent, document, options);
  } catch (error) {
    if (!(error instanceof StrictError)) throw error;
    const { apiVersion, kind } = sent;
    throw errors.badRequest(
      `${kind} in version ${JSON.stringify(apiVersion.split('/').at(-1))} cannot be handled as a ${kind}: ${error.message}`,
    );
  }
}

/** Kind that is accepted in any group and version, because clients send DeleteOptions of various groups. */
const OPTIONS = 'DeleteOptions';

/**
 * Rejects a document of an unknown kind, or of a kind other than the expected kind, with upstream's wording. Source:
 * k8s.io/apiserver/pkg/endpoints/handlers/rest.go.
 */
function checkType(expected: DecodedKind, apiVersion: unknown, kindName: unknown): void {
  const named = typeof apiVersion === 'string' && apiVersion !== '' ? apiVersion : expected.apiVersion;
  const kind = typeof kindName === 'string' && kindName !== '' ? kindName : expected.kind;
  if (named === expected.apiVersion && kind === expected.kind) return;
  const { group, version } = groupAndVersion(named);
  const isKnown = kindByGvk({ group, version, kind }) !== undefined;
  if (isKnown && kind === expected.kind) return;
  // The names of Go's internal packages in the message are derived from the API groups.
  const { group: own } = groupAndVersion(expected.apiVersion);
  const reason = isKnown
    ? `converting (${version}.${kind}) to (${own === '' ? 'core' : own.split('.')[0]}.${expected.kind}): unknown conversion`
    : `no kind ${JSON.stringify(shownText(kind))} is registered for version ${JSON.stringify(shownText(named))}`;
  throw errors.badRequest(
    `${shownText(kind)} in version ${JSON.stringify(shownText(version))} cannot be handled as a ${expected.kind}: ${reason}`,
  );
}

function groupAndVersion(apiVersion: string): { readonly group: string; readonly version: string } {
  const slash = apiVersion.indexOf('/');
  return { group: apiVersion.slice(0, Math.max(0, slash)), version: apiVersion.slice(slash + 1) };
}

export interface DecodeOptions {
  readonly validation: WriteOptions['validation'];
  /** Receives the warnings about unknown and duplicate fields. */
  readonly warnings?: string[];
  /** Duplicate fields that the parser of the document found. */
  readonly duplicates?: readonly string[];
  /** Whether empty fields are kept, which have a meaning in applied configurations. */
  readonly keepsEmpty?: boolean;
  /** Returns unknown and duplicate fields in the order of the document. Without it, duplicates come first. */
  readonly inOrder?: ((unknown: readonly string[]) => readonly string[]) | undefined;
}

/** Checks type information, prunes unknown fields and rejects wrong types. The object is in the served version. */
export function decodeObject(kind: DecodedKind, document: JsonObject, options: DecodeOptions): KubeObject {
  const { validation, warnings, duplicates = [], keepsEmpty = false } = options;
  const object = document as KubeObject;
  // Some clients write an empty group before the slash.
  if (object.apiVersion === '/v1') object.apiVersion = 'v1';
  const { apiVersion, kind: kindName } = object;
  const custom = kind.definition?.custom;
  if (custom === undefined && kind.kind !== OPTIONS) checkType(kind, apiVersion, kindName);
  const isUnnamed = apiVersion === undefined || apiVersion === '';
  if (apiVersion !== kind.apiVersion && !(isUnnamed && custom === undefined)) {
    const shown = isUnnamed ? '' : shownText(apiVersion);
    throw errors.badRequest(
      `the API version in the data (${shown}) does not match the expected API version (${kind.apiVersion})`,
    );
  }
  if (kindName !== undefined && kindName !== '' && kindName !== kind.kind) {
    if (custom !== undefined) {
      const { group } = groupAndVersion(kind.apiVersion);
      const failure = fieldError.invalid('kind', kindName, `must be ${kind.kind}`);
      throw invalid({ group, kind: shownText(kindName) }, object.metadata?.name ?? '', [failure]);
    }
    throw errors.badRequest(
      `the kind in the data (${shownText(kindName)}) does not match the expected kind (${kind.kind})`,
    );
  }
  object.apiVersion = kind.apiVersion;
  object.kind = kind.kind;
  if (custom === undefined && kind.schema === undefined) return object;
  const found = custom?.coerce(document) ?? pruneAndCheck(kind.schema as ObjectNode, document, keepsEmpty);
  const [typeError] = found.typeErrors;
  if (typeError !== undefined) {
    throw new WrongType(kind, typeError, found.conversionError ?? typeError);
  }
  dropEmptyLists(object.metadata);
  const unknown = found.unknownFields.map((field) => `unknown field ${JSON.stringify(field)}`);
  if (duplicates.length + unknown.length > 0) {
    const both = duplicates.length > 0 && unknown.length > 0 ? options.inOrder?.(found.unknownFields) : undefined;
    if (validation === 'Strict')
      throw new StrictError(
        `strict decoding error: ${(both ?? [...duplicateErrors(duplicates), ...unknown]).join(', ')}`,
      );
    if (validation === 'Warn') warnings?.push(...(both ?? [...duplicates, ...unknown]));
  }
  return object;
}

/** Strict errors for duplicate fields. The errors of YAML are combined into one error. */
export function duplicateErrors(duplicates: readonly string[]): readonly string[] {
  const [first] = duplicates;
  return first?.startsWith('line ') === true ? [`yaml: unmarshal errors:\n  ${duplicates.join('\n  ')}`] : duplicates;
}

/** Removes empty lists from the metadata, because Go's encoder omits empty lists and maps. */
function dropEmptyLists(metadata: Mutable<ObjectMeta> | undefined): void {
  if (metadata?.finalizers?.length === 0) delete metadata.finalizers;
  if (metadata?.ownerReferences?.length === 0) delete metadata.ownerReferences;
}
