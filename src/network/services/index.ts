export type { ListeningPorts } from './mode.ts';
export { createProxy } from './proxy.ts';
