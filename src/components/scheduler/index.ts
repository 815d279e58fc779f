export { SCHEDULER_LEASE, type SchedulerDeps } from './deps.ts';
export { createScheduler, type Scheduler } from './scheduler.ts';
