export { createHealthPorts } from './health-ports.ts';
