export { createServiceManager, type ServiceManager, systemdRuns } from './service-manager.ts';
