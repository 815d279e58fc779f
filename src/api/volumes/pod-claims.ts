import type { Pod } from '../generated/core/v1.ts';

/** Names of the claims that a pod references, including those of its ephemeral volumes. */
export function claimNames({ metadata, spec }: Pod): string[] {
  return (spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim !== undefined) return [persistentVolumeClaim.claimName];
    return ephemeral === undefined ? [] : [`${metadata?.name ?? ''}-${name}`];
  });
}
