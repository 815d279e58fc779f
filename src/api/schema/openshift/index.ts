export { openshiftDescriptions, openshiftTypes } from './packages.ts';
