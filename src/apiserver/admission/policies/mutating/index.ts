export { mutatingPolicies } from './mutating-policies.ts';
