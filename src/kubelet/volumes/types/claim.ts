/** Volumes of a claim: one that the pod names, and one that is created for the pod. */
import type { ClaimType } from './type.ts';

export const persistentVolumeClaim: ClaimType = {
  way: 'claim',
  source: 'persistentVolumeClaim',
  isReadOnly: ({ persistentVolumeClaim: source }) => source?.readOnly === true,
  apiObject: () => 'a volume claim',
  claimName: (_, { persistentVolumeClaim: source }) => source?.claimName ?? '',
};

export const ephemeral: ClaimType = {
  way: 'claim',
  source: 'ephemeral',
  apiObject: () => 'a volume claim',
  claimName: (pod, { name }) => `${pod.metadata?.name ?? ''}-${name}`,
};
