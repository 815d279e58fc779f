/** This host as the kubelet sees it. */
export { createHostFacts } from './facts.ts';
export { createMounter } from './mounts.ts';
export { createFileWatch } from './watch.ts';
