/** Serves rendered configurations to hosts during their installation. */
export type { ConfigListener, ListenOptions } from './port.ts';
export { createMachineConfigServer, type MachineConfigServer } from './server.ts';
