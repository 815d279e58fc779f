export { validatingPolicies } from './validating-policies.ts';
