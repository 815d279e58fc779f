export { type Controllers, createControllers } from './controllers.ts';
export { controllers } from './registry.ts';
