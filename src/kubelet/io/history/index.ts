/** Adapters of the usage history: counters of the host, and files. */
export { createHistoryFiles } from './history-files.ts';
export { createHostCounters } from './host-counters.ts';
