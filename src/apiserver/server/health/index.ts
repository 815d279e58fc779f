export { answerHealth, type HealthCheck, type HealthEndpoint, HealthResults } from './health.ts';
export { StartProgress } from './start-hooks.ts';
