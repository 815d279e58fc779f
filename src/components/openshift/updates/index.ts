export { UpdateAgent } from './agent.ts';
export { runGuard } from './guard.ts';
