/** Node groups: kubelet configuration stored in the cluster. */

export { defaultGroups, isGroupName } from './default-groups.ts';
export { followNodeGroup, type GroupFollowerOptions } from './follower.ts';
export { type GroupKeeperOptions, keepNodeGroups } from './keeper.ts';
