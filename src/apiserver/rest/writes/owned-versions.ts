/** Converts an object to the versions in which field managers own its fields. */
import { apiVersionOf, type JsonObject, type KubeObject } from '../../../api/meta/object.ts';
import { servedAs } from '../../../api/registry/versions.ts';
import { schemaOf, schemaOfType } from '../../../api/schema/index.ts';
import type { Versions } from '../../core/patch/index.ts';
import { fromStored, type ServedKind, toStored } from '../../pipeline/kinds.ts';
import type { ServerContext } from '../context.ts';

type OwnedVersionsContext = Pick<ServerContext, 'kinds'>;

/** Conversions between the versions of a kind. `written`: `group/version` of the request, one of these versions. */
export function versionsOf(context: OwnedVersionsContext, kind: ServedKind, written: string): Versions {
  if (kind.definition.custom !== undefined) return customVersions(context, kind);
  const convert = (object: JsonObject, from: string, to: string) => {
    const [source, target] = [inVersion(kind, from), inVersion(kind, to)];
    if (source === undefined || target === undefined) return undefined;
    const copy = structuredClone(object) as KubeObject;
    return { object: fromStored(target, toStored(source, copy)), schema: target.schema };
  };
  return {
    to: (object, apiVersion) => convert(object, written, apiVersion),
    back: (object, apiVersion) => convert(object, apiVersion, written)?.object ?? object,
  };
}

/** Finds a version of the kind, even if it is switched off, because switched-off versions can still be converted. */
function inVersion(kind: ServedKind, apiVersion: string): ServedKind | undefined {
  const { definition } = kind;
  for (const alias of [undefined, ...(definition.aliases ?? [])]) {
    const { group, version } = alias ?? definition;
    if (apiVersionOf({ group, version }) !== apiVersion) continue;
    const presented = servedAs(definition, alias);
    const schema =
      alias === undefined ? schemaOfType(definition.schemaName) : schemaOf({ group, version, kind: presented.kind });
    const names = { kind: presented.kind, plural: presented.plural };
    return { ...kind, ...names, presented, group, version, apiVersion, alias, schema };
  }
  return undefined;
}

/** Reinterprets the same content with the schema of the other version, without calling a conversion webhook. */
function customVersions({ kinds }: OwnedVersionsContext, kind: ServedKind): Versions {
  return {
    to(object, apiVersion) {
      const [group = '', version = ''] = apiVersion.split('/');
      const { schema } = kinds.at(group, version, kind.plural) ?? kind;
      return { object: { ...object, apiVersion }, schema };
    },
    back: (object) => ({ ...object, apiVersion: kind.apiVersion }),
  };
}
