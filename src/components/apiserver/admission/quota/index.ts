export { resourceQuota } from './quota.ts';
