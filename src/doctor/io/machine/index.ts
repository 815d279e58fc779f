export { readAreas, readFsync, readJournal, readMmc, readWrites } from './disks.ts';
export { readFirewall } from './firewall.ts';
export {
  readClock,
  readIdentity,
  readMemory,
  readModel,
  readPower,
  readProcessor,
  readTimeZone,
} from './hardware.ts';
export { readCgroups, readDenials, readEntropy, readModules, readSysctls } from './kernel.ts';
export { readConflicts, readLinks, readListeners, readPaths, readResolution, readRoutes } from './network.ts';
export { entriesOf, runProgram, textOf } from './read.ts';
export { readRemains } from './remains.ts';
