/** gRPC over our own HTTP/2: a listener for `hyperedge etcd`, and the etcd v3 client behind the `Store` port. */
export { createEtcdStore, type EtcdStoreOptions } from './etcd-store.ts';
export { createRpcListener, type RpcListenerOptions, type TlsMaterials } from './listener.ts';
