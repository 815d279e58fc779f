/** Names of links to the executable; each starts the component or command of this name. */
export const LINK_NAMES = [
  'hyperkube',
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kube-proxy',
  'kubelet',
  'openshift-node',
  'master-restart',
  'master-logs',
] as const;
