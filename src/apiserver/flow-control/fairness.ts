/** Creates the flow control gate from the server's configuration. */

import type { LoopContext, WriteContext } from '../rest/context.ts';
import type { Metrics } from '../server/metrics.ts';
import { FlowConfigController } from './config-controller.ts';
import { dumpsOf } from './dump.ts';
import { FlowGate, type Waiters } from './flow-gate.ts';
import { type Gate, InFlightGate } from './gate.ts';
import { renderFlows } from './metrics.ts';

type FairnessContext = WriteContext & LoopContext;

/** Defaults of upstream's --max-requests-inflight and --max-mutating-requests-inflight. */
const DEFAULT_IN_FLIGHT = { reading: 400, mutating: 200 };
const DEFAULT_REQUEST_SECONDS = 60;

export interface Fairness {
  readonly gate: Gate;
  /** Debug pages by path. */
  readonly debug: ReadonlyMap<string, (query: URLSearchParams) => string>;
  /** Starts with the stored configuration. Call before the first request. */
  load(waiters: Waiters): void;
  /** Sets the status of the flow control objects, and reconciles the objects from then on. Call it once they exist. */
  keep(): Promise<void>;
  stop(): void;
}

export function createFairness(context: FairnessContext, metrics: Metrics): Fairness {
  const { config, clock, kinds } = context;
  const limits = config.maxInFlight ?? DEFAULT_IN_FLIGHT;
  if (config.priorityAndFairness === false) {
    return { gate: new InFlightGate(limits), debug: new Map(), load: () => {}, keep: async () => {}, stop: () => {} };
  }
  const gate = new FlowGate({
    clock,
    kinds,
    seats: limits.reading + limits.mutating,
    requestTimeoutMs: (config.requestTimeoutSeconds ?? DEFAULT_REQUEST_SECONDS) * 1000,
  });
  const controller = new FlowConfigController(context, gate.flows);
  metrics.addGauge(() => renderFlows(gate.flows));
  return {
    gate,
    debug: dumpsOf(gate.flows, clock),
    load(waiters) {
      controller.load();
      gate.start(waiters);
    },
    async keep() {
      await controller.updateStatuses();
      controller.start();
    },
    stop: () => gate.stop(),
  };
}
