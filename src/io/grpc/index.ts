/**
 * gRPC over this project's own HTTP/2: the listener of `hyperedge etcd`, the etcd v3 client behind the `Store` port,
 * and clients of CRI, CSI and other plug-ins.
 */

export { type CriRuntime, createCriRuntime } from './cri/runtime.ts';
export { createCsiConnector } from './csi-driver.ts';
export { createEtcdAdmin } from './etcd-admin.ts';
export { createEtcdStore, type EtcdStoreOptions } from './etcd-store.ts';
export { createKmsPlugin } from './kms-plugin.ts';
export { createRpcListener, type RpcListenerOptions } from './listener.ts';
export { type BoundListeners, combineListeners } from './listeners.ts';
export { createPeerDialer } from './peer-dialer.ts';
export { createRegistrationSockets } from './plugin-registration.ts';
export { createPluginSockets } from './plugin-sockets.ts';
export type { TlsMaterials, TlsSource } from './tls-source.ts';
export { atTurnEnd } from './turn-end.ts';
