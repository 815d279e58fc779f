/** Finalizers that protect claims and volumes while they are in use. Source: pkg/volume/util. */
export const CLAIM_PROTECTION = 'kubernetes.io/pvc-protection';
export const VOLUME_PROTECTION = 'kubernetes.io/pv-protection';
