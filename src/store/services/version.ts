/** etcd version whose API is served. Clients check it: kubeadm rejects an etcd that is too old. */
export const ETCD_VERSION = '3.5.30';
/** Cluster version, without the patch level. */
export const CLUSTER_VERSION = '3.5';
