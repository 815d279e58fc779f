/** Streaming sub-resources: log, exec, attach, port-forward and proxy. */
export { endUpgrade } from './forward.ts';
export { stream, streamUpgrade } from './proxy.ts';
