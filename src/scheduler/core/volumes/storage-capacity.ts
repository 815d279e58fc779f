/**
 * Decides whether a CSI driver has capacity for a new volume on a node. Source: KEP-1472;
 * pkg/scheduler/framework/plugins/volumebinding hasEnoughCapacity.
 */
import type { Node, PersistentVolumeClaim } from '../../../api/generated/core/v1.ts';
import type { CSIDriver, CSIStorageCapacity, StorageClass } from '../../../api/generated/storage/v1.ts';
import { quantityValue, tryParseQuantity } from '../../../base/quantity.ts';
import { labelSelectorOf, matchesLabels } from '../../../base/selector.ts';

export interface CapacityLister {
  driver(name: string): CSIDriver | undefined;
  capacities(): readonly CSIStorageCapacity[];
}

/** Whether the driver has enough capacity on the node. Also true if the driver does not report its capacity. */
export function hasRoom(
  claim: PersistentVolumeClaim,
  { metadata, provisioner }: StorageClass,
  node: Node,
  lister: CapacityLister | undefined,
): boolean {
  const wanted = tryParseQuantity(claim.spec?.resources?.requests?.['storage']);
  if (wanted === undefined || lister?.driver(provisioner)?.spec?.storageCapacity !== true) return true;
  const bytes = quantityValue(wanted);
  return lister
    .capacities()
    .some(
      (each) => each.storageClassName === metadata?.name && largestVolume(each) >= bytes && isReachable(each, node),
    );
}

function largestVolume({ capacity, maximumVolumeSize }: CSIStorageCapacity): number {
  const limit = tryParseQuantity(maximumVolumeSize ?? capacity);
  return limit === undefined ? -1 : quantityValue(limit);
}

const isReachable = ({ nodeTopology }: CSIStorageCapacity, { metadata }: Node): boolean =>
  nodeTopology !== undefined && matchesLabels(labelSelectorOf(nodeTopology), metadata?.labels);
