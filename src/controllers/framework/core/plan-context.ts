/**
 * Inputs of a planner besides its snapshot. Time and randomness are arguments, so the same input gives the same plan.
 */
export interface PlanContext {
  readonly nowMs: number;
  /** Returns a random number, uniform in [0, 1). */
  random(): number;
}

/** An event to record about the planned object. */
export interface PlannedEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}
