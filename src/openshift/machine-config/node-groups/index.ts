/** Node groups: kubelet configuration stored in the cluster. */
export { followNodeGroup, type GroupFollowerOptions } from './follower.ts';
export { defaultGroups, isGroupName } from './groups.ts';
export { type GroupKeeperOptions, keepNodeGroups } from './keeper.ts';
