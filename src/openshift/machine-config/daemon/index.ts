/** Host part of machine config. */
export { createMachineConfigDaemon, type MachineConfigDaemon } from './daemon.ts';
export type { MachineConfigDaemonOptions } from './deps.ts';
export { applyServedConfig } from './served.ts';
