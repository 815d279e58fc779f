export { createDiscovery } from './discovery.ts';
