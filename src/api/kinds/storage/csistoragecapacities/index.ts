/**
 * The CSIStorageCapacity kind: free capacity that a CSI driver reports. Source:
 * k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity, pkg/apis/storage/validation.
 */

import { dns1123SubdomainErrors } from '../../../../base/names.ts';
import { formatQuantity, tryParseQuantity } from '../../../../base/quantity.ts';
import type { CSIStorageCapacity } from '../../../generated/storage/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { validateImmutable } from '../../../meta/validation.ts';
import { column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateNameRule } from '../../../validation/scalars.ts';
import { validateLabelSelector } from '../../../validation/selectors.ts';
import { nodeSelectorWarnings } from '../../../volumes/topology-warnings.ts';

function validate(each: CSIStorageCapacity): FieldError[] {
  const errors = each.nodeTopology === undefined ? [] : validateLabelSelector(each.nodeTopology, 'nodeTopology');
  errors.push(...validateNameRule(each.storageClassName ?? '', dns1123SubdomainErrors, 'storageClassName'));
  // As upstream, maximumVolumeSize is not validated.
  const quantity = tryParseQuantity(each.capacity);
  if (quantity !== undefined && quantity.nanos < 0n) {
    errors.push(fieldError.invalid('capacity', formatQuantity(quantity), 'must be greater than or equal to 0'));
  }
  return errors;
}

export const csiStorageCapacities: KindDefinition<CSIStorageCapacity> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'CSIStorageCapacity',
  plural: 'csistoragecapacities',
  singular: 'csistoragecapacity',
  listKind: 'CSIStorageCapacityList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.storage.v1.CSIStorageCapacity',
  storagePrefix: 'csistoragecapacities',
  allowUnconditionalUpdate: false,
  aliases: [sameShape('storage.k8s.io', 'v1beta1', '1.24', '1.27')],
  strategy: {
    validate,
    warnings: (each) => nodeSelectorWarnings(each.nodeTopology, 'nodeTopology'),
    validateUpdate: (each, old) => [
      ...validateImmutable(each.nodeTopology, old.nodeTopology, 'nodeTopology'),
      ...validateImmutable(each.storageClassName, old.storageClassName, 'storageClassName'),
    ],
  },
  columns: [
    nameColumn,
    column<CSIStorageCapacity>('StorageClassName', 'The storage class.', (each) => each.storageClassName ?? ''),
    column<CSIStorageCapacity>('Capacity', 'Available capacity.', (each) => each.capacity ?? '<unset>'),
  ],
};
