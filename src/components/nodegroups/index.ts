/** Node groups: configuration of kubelets that is kept in the cluster. */
export { followNodeGroup, type GroupFollowerOptions } from './follower.ts';
export { defaultGroups, isGroupName } from './groups.ts';
export { GROUP_CLAIM, GROUP_LABEL, type GroupKeeperOptions, keepNodeGroups } from './keeper.ts';
