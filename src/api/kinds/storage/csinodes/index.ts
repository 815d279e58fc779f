/**
 * The CSINode kind: CSI drivers that run on a node. Source: k8s.io/kubernetes/pkg/registry/storage/csinode,
 * pkg/apis/storage/validation.
 */

import { qualifiedNameErrors } from '../../../../base/names.ts';
import type { CSINode, CSINodeDriver } from '../../../generated/storage/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet, utf8Length, validateImmutable } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateDriverName } from '../../../validation/csi.ts';
import { validateNameRule, validateNonNegative } from '../../../validation/scalars.ts';

const MAX_NODE_ID = 256;

function validate(node: CSINode): FieldError[] {
  const names = new Set<string>();
  return (node.spec?.drivers ?? []).flatMap((driver, index) => {
    const at = `spec.drivers[${index}]`;
    const errors = validateDriver(driver, at);
    if (names.has(driver.name)) errors.push(fieldError.duplicate(`${at}.name`, driver.name));
    names.add(driver.name);
    return [...errors, ...validateTopology(driver, at)];
  });
}

function validateDriver(driver: CSINodeDriver, at: string): FieldError[] {
  const errors = validateDriverName(driver.name ?? '', `${at}.name`);
  if (!isSet(driver.nodeID)) errors.push(fieldError.required(`${at}.nodeID`));
  else if (utf8Length(driver.nodeID) > MAX_NODE_ID) {
    errors.push(fieldError.invalid(`${at}.nodeID`, driver.nodeID, `must be ${MAX_NODE_ID} characters or less`));
  }
  return [...errors, ...validateNonNegative(driver.allocatable?.count, `${at}.allocatable.count`)];
}

/** As upstream, the error path is the driver, not its topology keys. */
function validateTopology(driver: CSINodeDriver, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const keys = new Set<string>();
  for (const key of driver.topologyKeys ?? []) {
    if (key === '') errors.push(fieldError.required(at));
    if (keys.has(key)) errors.push(fieldError.duplicate(at, key));
    keys.add(key);
    errors.push(...validateNameRule(key, qualifiedNameErrors, at));
  }
  return errors;
}

/** A driver's entry is immutable. To change it, the driver must be removed and registered again. */
function validateUpdate(node: CSINode, old: CSINode): FieldError[] {
  const before = new Map((old.spec?.drivers ?? []).map((driver) => [driver.name, driver]));
  const fixed = ({ allocatable: _allocatable, ...driver }: CSINodeDriver): unknown => driver;
  return (node.spec?.drivers ?? []).flatMap((driver) => {
    const earlier = before.get(driver.name);
    return earlier === undefined ? [] : validateImmutable(fixed(driver), fixed(earlier), 'spec.drivers');
  });
}

export const csiNodes: KindDefinition<CSINode> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'CSINode',
  plural: 'csinodes',
  singular: 'csinode',
  listKind: 'CSINodeList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.storage.v1.CSINode',
  skeleton: { spec: { drivers: null } },
  returnsDeleted: true,
  storagePrefix: 'csinodes',
  allowUnconditionalUpdate: false,
  aliases: [sameShape('storage.k8s.io', 'v1beta1', '1.17', '1.22')],
  strategy: { validate, validateUpdate },
  columns: [
    nameColumn,
    column<CSINode>('Drivers', 'Number of drivers on the node.', (node) => node.spec?.drivers?.length ?? 0, {
      type: 'integer',
    }),
    ageColumn,
  ],
};
