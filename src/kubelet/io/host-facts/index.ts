export { createHostFacts } from './facts.ts';
export { hostLogs, journalArguments } from './logs.ts';
export { createMounter } from './mounts.ts';
export { processFacts } from './process-facts.ts';
export { createFileWatch, raiseWatchLimits, watchPath } from './watch.ts';
