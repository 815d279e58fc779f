export { answerHealth, type HealthCheck, type HealthEndpoint, HealthResults } from './health.ts';
