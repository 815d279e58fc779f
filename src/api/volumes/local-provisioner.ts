/**
 * Names of the embedded local provisioner, whose volumes are directories of nodes. Controller and host communicate
 * through annotations of the Node, which both may write; a node's credentials cannot change volumes.
 */
export const LOCAL_PROVISIONER = 'hyperedge.dev/local';
export const LOCAL_CLASS = 'hyperedge-local';
/** Annotation of a Node, set by the host: its directory for local volumes. */
export const LOCAL_DIRECTORY = 'local-volumes.hyperedge.dev/directory';
/** Annotation of a Node, set by the controller: names of volumes whose data must be deleted, separated by commas. */
export const LOCAL_DELETE = 'local-volumes.hyperedge.dev/delete';
/** Annotation of a Node, set by the host: names of volumes from LOCAL_DELETE whose data has been deleted. */
export const LOCAL_DELETED = 'local-volumes.hyperedge.dev/deleted';
/** Finalizer that keeps a PersistentVolume until its data is deleted. */
export const LOCAL_FINALIZER = 'hyperedge.dev/local-volume';
/** Annotation of a PersistentVolume with the name of the node that has its directory. */
export const LOCAL_NODE = 'hyperedge.dev/node';

/** Volume names in an annotation. Names that the provisioner never assigns are dropped. */
export function volumeNames(text: string | undefined): string[] {
  return (text ?? '').split(',').filter((name) => /^pvc-[0-9a-f-]{36}$/.test(name));
}
