/** Renders response objects that are not cached: reviews, scales, statuses, lists of deleted objects. */
import { stringify } from 'yaml';
import type { JsonObject, KubeObject } from '../../api/meta/object.ts';
import { schemaNameOf } from '../../api/schema/index.ts';
import { type AnswerForm, negotiateWithoutTable } from './negotiate.ts';
import { encodeMessage, envelope, hasMessage, listParts } from './protobuf/encode.ts';
import { PROTOBUF } from './protobuf/field-table.ts';

export interface Rendered {
  readonly body: Buffer;
  readonly contentType: string;
}

/**
 * Renders an object in the preferred format that it supports, otherwise as JSON, because an error must be sent in any
 * case.
 */
export function renderObject(accept: string | undefined, object: KubeObject): Rendered {
  const { apiVersion = '', kind = '' } = object;
  const { items } = object as { items?: JsonObject[] };
  const typeName = typeNameOf(apiVersion, items === undefined ? kind : kind.slice(0, -'List'.length));
  switch (formatFor(accept, hasMessage(typeName))) {
    case 'protobuf': {
      const document = object as JsonObject & KubeObject;
      const own = typeNameOf(apiVersion, kind);
      const body =
        items === undefined || hasMessage(own)
          ? envelope(apiVersion, kind, encodeMessage(items === undefined ? typeName : own, document))
          : Buffer.concat([
              ...listParts(
                apiVersion,
                kind,
                (document.metadata ?? {}) as JsonObject,
                items.map((item) => encodeMessage(typeName, item)),
              ),
            ]);
      return { body, contentType: PROTOBUF };
    }
    case 'yaml':
      return { body: Buffer.from(stringify(object)), contentType: 'application/yaml' };
    case 'json':
      return { body: Buffer.from(`${JSON.stringify(object)}\n`), contentType: 'application/json' };
  }
}

function typeNameOf(apiVersion: string, kind: string): string {
  const slash = apiVersion.indexOf('/');
  const group = slash < 0 ? '' : apiVersion.slice(0, slash);
  return schemaNameOf({ group, version: apiVersion.slice(slash + 1), kind });
}

function formatFor(accept: string | undefined, protobuf: boolean): AnswerForm['format'] {
  try {
    return negotiateWithoutTable(accept, { protobuf }).format;
  } catch {
    return 'json';
  }
}
