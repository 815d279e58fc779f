/** Versions of kinds that differ from the stored ones in name only. */
import type { KindAlias } from './definition.ts';

/** A beta version whose objects look as those of the stored version; `since` and `removed` are upstream's releases. */
export function sameShape(group: string, version: string, since: string, removed: string): KindAlias<never> {
  return {
    group,
    version,
    identical: true,
    deprecated: { since, removed },
    convertTo: (object) => object as never,
    convertFrom: (object) => object,
  };
}
