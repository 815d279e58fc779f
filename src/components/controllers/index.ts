export { type Controllers, createControllers } from './controllers.ts';
export {
  CONTROLLERS_LEASE,
  type ControllersDeps,
  type ControllersOptions,
} from './deps.ts';
export { followFailedHosts } from './failed-hosts.ts';
export { controllers } from './registry.ts';
