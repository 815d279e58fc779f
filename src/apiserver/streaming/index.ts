/** Streaming subresources: log, exec, attach, port-forward, proxy, and console and power of rigs. */
export { endUpgrade } from './forward.ts';
export { stream, streamUpgrade } from './proxy.ts';
export { sendRecordings } from './recordings.ts';
export { switchRig } from './rigs.ts';
