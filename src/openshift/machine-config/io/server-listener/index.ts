export { listenForConfigs } from './listener.ts';
