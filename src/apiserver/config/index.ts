export { apiFlagHelp } from './flags.ts';
export { ApiUsageProblem, ApiValues, readApiArguments } from './values.ts';
