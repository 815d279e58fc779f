export { createRpcListener, type RpcListenerOptions } from './listener.ts';
export { type BoundListeners, combineListeners } from './listeners.ts';
export type { TlsMaterials, TlsSource } from './tls-source.ts';
