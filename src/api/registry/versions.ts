/** Aliases for versions that differ from the stored version in name only. */
import type { KubeObject } from '../meta/object.ts';
import type { KindAlias, KindDefinition } from './definition.ts';

/** An identical version without a deprecation warning. */
export function otherVersion<T extends KubeObject>(group: string, version: string): KindAlias<T> {
  return { group, version, identical: true, convertTo: (object) => object as T, convertFrom: (object) => object };
}

/** An identical beta version. `since` and `removed` are the Kubernetes releases that deprecated and removed it. */
export function sameShape<T extends KubeObject>(
  group: string,
  version: string,
  since: string,
  removed: string,
): KindAlias<T> {
  return { ...otherVersion(group, version), deprecated: { since, removed } };
}

const renamed = new WeakMap<KindAlias, KindDefinition>();

/** The definition as the alias presents it. Equal to `kind` unless the alias has other names. */
export function servedAs(kind: KindDefinition, alias: KindAlias | undefined): KindDefinition {
  if (alias?.names === undefined) return kind;
  let definition = renamed.get(alias);
  if (definition === undefined) {
    const { shortNames: _s, categories: _c, statusStrategy: _status, ...rest } = kind;
    const { group, version } = alias;
    definition = {
      ...rest,
      ...alias.names,
      group,
      version,
      aliases: [],
      subresourceStrategies: {},
      extraSubresources: [],
    };
    renamed.set(alias, definition);
  }
  return definition;
}

const sentAs = new WeakMap<object, string>();

/** Records the version in which an object was sent, for the few rules that differ between versions. */
export function noteVersion(object: object, version: string): void {
  sentAs.set(object, version);
}

/** Whether the object was sent in a beta version. */
export function isBeta(object: object): boolean {
  return sentAs.get(object)?.includes('beta') === true;
}
