/** The etcd version whose API is served, for clients that check: kubeadm rejects an etcd that is too old. */
export const ETCD_VERSION = '3.5.30';
/** The cluster version, without the patch level. */
export const CLUSTER_VERSION = '3.5';
