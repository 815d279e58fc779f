/** The machine config daemon, which applies a pool's configuration on each host. */
export { createMachineConfigDaemon, type MachineConfigDaemon } from './daemon.ts';
export type { MachineConfigDaemonOptions } from './deps.ts';
export { applyServedConfig } from './served.ts';
