/**
 * The control-plane components: names of their sub-commands, their containers and, with the prefix `master-`, their
 * pods.
 */
export const COMPONENTS = ['api', 'controllers', 'etcd'] as const;
