/** The host's tools for volumes: mount(8), losetup, iscsiadm, quotas. */
export { createVolumeTools } from './volume-tools.ts';
