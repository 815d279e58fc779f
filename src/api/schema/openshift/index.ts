export { type DeclaredPackage, declarePackage } from './declare.ts';
export { openshiftDescriptions, openshiftTypes } from './packages.ts';
