export { clusterQuotasOf, clusterResourceQuota } from './cluster-quota.ts';
export { resourceQuota } from './quota.ts';
