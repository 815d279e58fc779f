/**
 * Application of DeviceTaintRules to devices. Source: k8s.io/dynamic-resource-allocation/resourceslice/tracker,
 * k8s.io/kubernetes/pkg/apis/resource/validation.
 */
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { validateDeviceTaints, validateDriver, validateLabelName, validatePoolName } from './shared-rules.ts';
import type { DeviceTaintRule, ResourceSlice } from './types.ts';

export function validateDeviceTaintRule({ spec }: DeviceTaintRule): FieldError[] {
  const { driver, pool, device } = spec?.deviceSelector ?? {};
  const taint = spec?.taint;
  return [
    ...(driver === undefined ? [] : validateDriver(driver, 'spec.deviceSelector.driver')),
    ...(pool === undefined ? [] : validatePoolName(pool, 'spec.deviceSelector.pool')),
    ...(device === undefined ? [] : validateLabelName(device, 'spec.deviceSelector.device')),
    ...(taint === undefined
      ? [fieldError.required('spec.taint', '')]
      : validateDeviceTaints([taint], 'spec.taint').map((error) => ({
          ...error,
          field: error.field.replace('spec.taint[0]', 'spec.taint'),
        }))),
  ];
}

/** Returns the slices with the rules' taints on matching devices. A rule without a selector matches no devices. */
export function slicesWithRules(
  slices: readonly ResourceSlice[],
  rules: readonly DeviceTaintRule[],
): readonly ResourceSlice[] {
  const effective = rules.filter(({ spec }) => spec?.deviceSelector !== undefined && spec.taint !== undefined);
  if (effective.length === 0) return slices;
  return slices.map((slice) => {
    const { driver = '', pool } = slice.spec ?? {};
    const matching = effective.filter(({ spec }) => {
      const { deviceSelector = {} } = spec ?? {};
      return (deviceSelector.driver ?? driver) === driver && (deviceSelector.pool ?? pool?.name) === pool?.name;
    });
    if (matching.length === 0) return slice;
    const devices = slice.spec?.devices?.map((device) => {
      const added = matching.flatMap(({ spec }) => {
        const named = spec?.deviceSelector?.device ?? device.name;
        return named === device.name && spec?.taint !== undefined ? [spec.taint] : [];
      });
      return added.length === 0 ? device : { ...device, taints: [...(device.taints ?? []), ...added] };
    });
    return { ...slice, spec: { ...slice.spec, ...(devices === undefined ? {} : { devices }) } };
  });
}
