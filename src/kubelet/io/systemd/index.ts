export { createLoginManager } from './login-manager.ts';
export { createServiceManager, type ServiceManager, systemdRuns } from './service-manager.ts';
