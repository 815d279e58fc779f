/** API Priority and Fairness without a clock. Start with `new FlowControl(seats, now)`; see `flow-control.ts`. */
export type { FlowCounters } from './counters.ts';
export { FlowControl, type Flows } from './flow-control.ts';
export type { FlowRequest } from './flow-queue.ts';
export { reconcileFlowObject } from './maintain.ts';
export type { PriorityLevel } from './priority-level.ts';
export type { WorkEstimate } from './types.ts';
export { estimateList, estimateWrite, ONE_SEAT } from './work-estimate.ts';
