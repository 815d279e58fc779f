export { operatorLifecycleManager } from './olm.ts';
