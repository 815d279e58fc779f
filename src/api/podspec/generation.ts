/** The pod generation for which a status or condition was written. Source: KEP-5067. */
import type { Pod } from '../generated/core/v1.ts';

/** Object to spread into a status or condition. Empty for a pod without a generation, for example a static pod. */
export const observedGeneration = ({ metadata }: Pod): { readonly observedGeneration?: number } =>
  metadata?.generation === undefined ? {} : { observedGeneration: metadata.generation };
