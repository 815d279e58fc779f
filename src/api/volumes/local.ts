/**
 * The embedded local provisioner: directories of nodes as volumes. The controller and the host of the node agree by
 * annotations of the Node, which both may write: a node's credentials cannot change volumes.
 */
export const LOCAL_PROVISIONER = 'hyperedge.dev/local';
export const LOCAL_CLASS = 'hyperedge-local';
/** Of the host: where it keeps local volumes. */
export const LOCAL_DIRECTORY = 'local-volumes.hyperedge.dev/directory';
/** Of the controller: names of volumes, with commas, whose data shall be deleted. */
export const LOCAL_DELETE = 'local-volumes.hyperedge.dev/delete';
/** Of the host: those of them whose data is deleted. */
export const LOCAL_DELETED = 'local-volumes.hyperedge.dev/deleted';
/** Keeps a volume until its data is deleted. */
export const LOCAL_FINALIZER = 'hyperedge.dev/local-volume';
/** On a volume: the name of its node. */
export const LOCAL_NODE = 'hyperedge.dev/node';

/** Names of volumes in an annotation; names that the provisioner never gives are dropped. */
export function volumeNames(text: string | undefined): string[] {
  return (text ?? '').split(',').filter((name) => /^pvc-[0-9a-f-]{36}$/.test(name));
}
