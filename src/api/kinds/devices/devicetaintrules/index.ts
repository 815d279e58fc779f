/**
 * Rules that taint devices. Source: k8s.io/kubernetes/pkg/registry/resource/devicetaintrule,
 * pkg/apis/resource/validation; KEP-5055.
 */
import { timestamp } from '../../../../base/time/timestamps.ts';
import { validateDeviceTaintRule } from '../../../devices/taint-rules.ts';
import type { DeviceTaintRule } from '../../../devices/types.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';

/** Sets timeAdded of the taint. A changed effect gets a new time, because tolerationSeconds count from it. */
function stamp(rule: DeviceTaintRule, old: DeviceTaintRule | undefined, nowMs: number): void {
  const taint = rule.spec?.taint;
  if (taint === undefined) return;
  const before = old?.spec?.taint;
  const kept = before?.timeAdded === taint.timeAdded && before?.effect === taint.effect;
  if (taint.timeAdded === undefined || (old !== undefined && !kept && before?.timeAdded === taint.timeAdded))
    taint.timeAdded = timestamp(nowMs);
}

const { strategy, statusStrategy } = specStatusStrategies<DeviceTaintRule>({
  prepareForCreate: (rule, { nowMs }) => stamp(rule, undefined, nowMs),
  prepareForUpdate: (rule, old, { nowMs }) => stamp(rule, old, nowMs),
  validate: validateDeviceTaintRule,
});

export const deviceTaintRules: KindDefinition<DeviceTaintRule> = {
  group: 'resource.k8s.io',
  version: 'v1beta2',
  kind: 'DeviceTaintRule',
  plural: 'devicetaintrules',
  singular: 'devicetaintrule',
  listKind: 'DeviceTaintRuleList',
  namespaced: false,
  offByDefault: true,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.resource.v1beta2.DeviceTaintRule',
  storagePrefix: 'devicetaintrules',
  returnsDeleted: true,
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<DeviceTaintRule>('Driver', 'Driver of the devices.', (rule) => rule.spec?.deviceSelector?.driver ?? ''),
    column<DeviceTaintRule>('Pool', 'Pool of the devices.', (rule) => rule.spec?.deviceSelector?.pool ?? ''),
    column<DeviceTaintRule>('Device', 'Name of the device.', (rule) => rule.spec?.deviceSelector?.device ?? ''),
    column<DeviceTaintRule>('Effect', 'Effect of the taint.', (rule) => rule.spec?.taint?.effect ?? ''),
    ageColumn,
  ],
};
