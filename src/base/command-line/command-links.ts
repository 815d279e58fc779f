/** Names of symbolic links to the executable. Each one starts the component or command of that name. */
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
  'kubectl',
] as const;
