/** Serves rendered configurations to hosts that are installed. */
export type { ConfigListener, ListenOptions } from './port.ts';
export { createMachineConfigServer, type MachineConfigServer } from './server.ts';
