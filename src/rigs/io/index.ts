export { createRigHost, type RigHostOptions } from './host.ts';
