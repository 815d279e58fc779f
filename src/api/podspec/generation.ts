/** The generation of a pod that a part of its status was written for. Source: KEP-5067. */
import type { Pod } from 'kubernetes-types/core/v1';

/** For a status or a condition, to spread; empty for a pod without generation, a static one for example. */
export const observedGeneration = ({ metadata }: Pod): { readonly observedGeneration?: number } =>
  metadata?.generation === undefined ? {} : { observedGeneration: metadata.generation };
