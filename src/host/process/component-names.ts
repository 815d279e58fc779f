/**
 * The control-plane components. Each name is that of a sub-command and of a container. The pod's name has the prefix
 * `master-`.
 */
export const COMPONENTS = ['api', 'controllers', 'etcd'] as const;
