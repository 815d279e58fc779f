import type { Node } from '../../api/generated/core/v1.ts';
import { resources } from '../../api/resources.ts';
import type { NodeName } from '../../base/brand.ts';
import { CodedError } from '../../base/errors.ts';
import type { ApiClient } from '../../client/index.ts';

const isReady = (node: Node): boolean =>
  node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
const machineOf = (node: Node): string => node.status?.nodeInfo?.machineID ?? '';

/**
 * Checks that no other Ready node has the name or the machine-id of a joining host. Throws CodedErrors 'name-taken' and
 * 'machine-id-taken' with the fix.
 */
export async function checkIdentity(client: ApiClient, nodeName: NodeName, machineId: string): Promise<void> {
  const { items } = await client.resource(resources.nodes).list();
  const ready = items.filter(isReady);
  const same = ready.find((node) => node.metadata?.name === nodeName);
  if (same !== undefined && machineOf(same) !== machineId) {
    throw new CodedError(
      'name-taken',
      `node.name: node ${nodeName} exists and is Ready on another machine (machine-id ${machineOf(same)}); set another name in bootstrap.yaml`,
    );
  }
  const twin = ready.find((node) => node.metadata?.name !== nodeName && machineOf(node) === machineId);
  if (twin !== undefined && machineId !== '') {
    throw new CodedError(
      'machine-id-taken',
      `/etc/machine-id: node ${twin.metadata?.name} has the same machine-id, ${machineId}; on the copy run: rm /etc/machine-id && systemd-machine-id-setup && reboot`,
    );
  }
}
