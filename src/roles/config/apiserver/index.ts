export { checkFeatureGates } from './feature-gates.ts';
export { apiFlagHelp } from './flags.ts';
export { ApiUsageProblem, ApiValues, readApiArguments } from './values.ts';
