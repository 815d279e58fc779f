/** Files, units and boot loaders of a host that MachineConfigs change. */
export { createDisk } from './disk.ts';
export { createHostFiles } from './host-files.ts';
export { createHostKernel } from './kernel.ts';
export { createDirectoryWatch } from './watch.ts';
