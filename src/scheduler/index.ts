export { SCHEDULER_LEASE, type SchedulerSettings } from './deps.ts';
export type { ExtenderSettings } from './extender-port.ts';
export { createScheduler, type Scheduler } from './scheduler.ts';
