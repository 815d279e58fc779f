export { createProxy } from './proxy.ts';
