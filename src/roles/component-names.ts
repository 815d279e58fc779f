/** The control-plane components; the names of their sub-commands, containers and, with `master-` before them, pods. */
export const COMPONENTS = ['api', 'controllers', 'etcd'] as const;
