export { type PolicyPod, policyPodOf } from './compile.ts';
export { PolicyPlanner } from './planner.ts';
