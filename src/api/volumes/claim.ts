/**
 * Defaults and validation of claims, including templates in stateful sets and ephemeral volumes. Source:
 * k8s.io/kubernetes/pkg/apis/core/v1 defaults, pkg/apis/core/validation ValidatePersistentVolumeClaim.
 */

import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../base/names.ts';
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec, TypedObjectReference } from '../generated/core/v1.ts';
import { semanticEqual } from '../meta/equality.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { validateNameRule } from '../validation/scalars.ts';
import { validateLabelSelector } from '../validation/selectors.ts';
import {
  validateAccessModes,
  validateClassName,
  validatePositiveQuantity,
  validateVolumeMode,
} from './access-modes.ts';

export function setClaimDefaults(claim: PersistentVolumeClaim): void {
  claim.spec ??= {};
  claim.spec.volumeMode ??= 'Filesystem';
  if (!isSet(claim.status?.phase)) Object.assign(claim, { status: { ...claim.status, phase: 'Pending' } });
}

const SNAPSHOT_GROUP = 'snapshot.storage.k8s.io';

/**
 * Drops data sources of unsupported kinds from `dataSource`, and dataSourceRef with a namespace, which needs a feature
 * gate that is off by default.
 */
export function dropUnsupportedSources(spec: PersistentVolumeClaimSpec | undefined): void {
  if (spec === undefined) return;
  if (isSet(spec.dataSourceRef?.namespace)) delete spec.dataSourceRef;
  const source = spec.dataSource;
  if (source === undefined || spec.dataSourceRef !== undefined) return;
  const known = isSet(source.apiGroup)
    ? source.apiGroup === SNAPSHOT_GROUP && source.kind === 'VolumeSnapshot'
    : source.kind === 'PersistentVolumeClaim';
  if (!known) delete spec.dataSource;
}

/** Copies dataSource and dataSourceRef to each other, because older clients know dataSource only. */
export function alignDataSources(spec: PersistentVolumeClaimSpec | undefined): void {
  if (spec === undefined) return;
  const { dataSource, dataSourceRef } = spec;
  if (dataSource !== undefined && dataSourceRef === undefined) spec.dataSourceRef = { ...dataSource };
  else if (dataSourceRef !== undefined && dataSource === undefined && !isSet(dataSourceRef.namespace)) {
    const { apiGroup, kind, name } = dataSourceRef;
    spec.dataSource = { ...(apiGroup === undefined ? {} : { apiGroup }), kind, name };
  }
}

export function validateClaimSpec(given: PersistentVolumeClaimSpec | undefined, path: string): FieldError[] {
  const spec = given ?? {};
  const errors: FieldError[] = [];
  if ((spec.accessModes ?? []).length === 0) {
    errors.push(fieldError.required(`${path}.accessModes`, 'at least 1 access mode is required'));
  }
  if (spec.selector !== undefined) errors.push(...validateLabelSelector(spec.selector, `${path}.selector`));
  errors.push(...validateAccessModes(spec.accessModes, `${path}.accessModes`));
  const storage = spec.resources?.requests?.['storage'];
  const at = `${path}.resources[storage]`;
  if (storage === undefined) errors.push(fieldError.required(at));
  else errors.push(...validatePositiveQuantity(storage, at));
  errors.push(...validateClassName(spec.storageClassName, `${path}.storageClassName`));
  errors.push(...validateVolumeMode(spec.volumeMode, `${path}.volumeMode`));
  errors.push(...validateSource(spec.dataSource, `${path}.dataSource`));
  errors.push(...validateSource(spec.dataSourceRef, `${path}.dataSourceRef`));
  const reference = spec.dataSourceRef;
  if (isSet(reference?.namespace)) {
    errors.push(...validateNameRule(reference.namespace, dns1123LabelErrors, `${path}.dataSourceRef.namespace`));
    if (spec.dataSource !== undefined) {
      errors.push(
        fieldError.invalid(
          path,
          `${path}.dataSource`,
          'may not be specified when dataSourceRef.namespace is specified',
        ),
      );
    }
  } else if (
    spec.dataSource !== undefined &&
    reference !== undefined &&
    !semanticEqual(named(spec.dataSource), named(reference))
  ) {
    errors.push(fieldError.invalid(path, `${path}.dataSource`, 'must match dataSourceRef'));
  }
  errors.push(...validateClassName(spec.volumeAttributesClassName, `${path}.volumeAttributesClassName`));
  return errors;
}

const named = ({ apiGroup, kind, name }: TypedObjectReference): unknown => [apiGroup ?? '', kind, name];

function validateSource(source: TypedObjectReference | undefined, path: string): FieldError[] {
  if (source === undefined) return [];
  const errors: FieldError[] = [];
  if (!isSet(source.name)) errors.push(fieldError.required(`${path}.name`));
  if (!isSet(source.kind)) errors.push(fieldError.required(`${path}.kind`));
  if (!isSet(source.apiGroup) && source.kind !== 'PersistentVolumeClaim') {
    errors.push(
      fieldError.invalid(
        path,
        source.kind ?? '',
        "must be 'PersistentVolumeClaim' when referencing the default apiGroup",
      ),
    );
  }
  if (isSet(source.apiGroup)) {
    errors.push(...validateNameRule(source.apiGroup, dns1123SubdomainErrors, `${path}.apiGroup`));
  }
  return errors;
}
