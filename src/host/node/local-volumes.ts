/**
 * Local volumes of this host. Publishes the directory of the volumes on the Node, and deletes the data of volumes that
 * the provisioner lists on the Node for deletion. The kubelet creates the directory of a volume when it is first
 * mounted.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Node } from '../../api/generated/core/v1.ts';
import { resources } from '../../api/resources.ts';
import { LOCAL_DELETE, LOCAL_DELETED, LOCAL_DIRECTORY, volumeNames } from '../../api/volumes/local-provisioner.ts';
import type { NodeName } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient, InformerFactory } from '../../client/index.ts';
import { trees } from '../../runtime/directory-removal/index.ts';
import type { Paths } from '../config/paths.ts';

/** Starts to follow the Node and ends when the informers stop. */
export async function keepLocalVolumes(
  { localVolumes: directory, createdVolumes }: Pick<Paths, 'localVolumes' | 'createdVolumes'>,
  nodeName: NodeName,
  informers: InformerFactory,
  client: ApiClient,
  hostLog: Log,
): Promise<void> {
  const log = hostLog.named('local-volumes');
  await mkdir(directory, { recursive: true, mode: 0o711 });
  const informer = informers.informer(resources.nodes, { fieldSelector: `metadata.name=${nodeName}` });
  informer.start();
  const apply = async (node: Node): Promise<void> => {
    const annotations = node.metadata?.annotations ?? {};
    const deleted = volumeNames(annotations[LOCAL_DELETE]);
    for (const name of deleted) {
      // The record of the volume is removed first, because the kubelet rejects a volume that has only a record.
      await rm(join(createdVolumes, name), { force: true });
      await trees.remove(join(directory, name));
      if (!volumeNames(annotations[LOCAL_DELETED]).includes(name)) log.info('local volume deleted', { volume: name });
    }
    const wanted = { [LOCAL_DIRECTORY]: directory, [LOCAL_DELETED]: deleted.join(',') };
    const isSame = Object.entries(wanted).every(([key, text]) => (annotations[key] ?? '') === text);
    if (isSame) return;
    const changed = { ...wanted, ...(deleted.length === 0 ? { [LOCAL_DELETED]: null } : {}) };
    await client.resource(resources.nodes).patch(nodeName, undefined, 'merge', { metadata: { annotations: changed } });
  };
  let applying: Promise<void> = Promise.resolve();
  const changed = (node: Node): void => {
    applying = applying
      .then(() => apply(node))
      .catch((error: unknown) => log.warn('local volumes not updated', { error: messageOf(error) }));
  };
  informer.onChange({ added: changed, updated: changed });
}
