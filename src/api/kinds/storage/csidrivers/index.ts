/** CSI drivers. Source: k8s.io/kubernetes/pkg/registry/storage/csidriver, pkg/apis/storage/{v1,validation}. */
import type { CSIDriver, CSIDriverSpec } from '../../../generated/storage/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { validateImmutable } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { Column, KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, bumpGeneration, metadataOf } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateOptionalOneOf } from '../../../validation/scalars.ts';

const MIN_TOKEN_SECONDS = 600;
const MAX_TOKEN_SECONDS = 2 ** 32;
const MIN_PERIOD_SECONDS = 10;
const FLAGS = ['attachRequired', 'podInfoOnMount', 'storageCapacity'] as const;

/**
 * Drops the field of the feature gate VolumeLimitScaling, which is off by default in 1.36, unless the stored object
 * uses it.
 */
function dropUnsupported(driver: CSIDriver, old?: CSIDriver): void {
  const before: CSIDriverSpec = old?.spec ?? {};
  const spec: CSIDriverSpec = driver.spec ?? {};
  if (before.preventPodSchedulingIfMissing === undefined) delete spec.preventPodSchedulingIfMissing;
}

function validate({ spec = {} }: CSIDriver): FieldError[] {
  const {
    tokenRequests,
    serviceAccountTokenInSecrets,
    nodeAllocatableUpdatePeriodSeconds: period,
  }: CSIDriverSpec = spec;
  const errors = FLAGS.filter((field) => spec[field] === undefined).map((field) =>
    fieldError.required(`spec.${field}`),
  );
  errors.push(
    ...validateOptionalOneOf(spec.fsGroupPolicy, ['File', 'None', 'ReadWriteOnceWithFSType'], 'spec.fsGroupPolicy'),
    ...validateTokens(tokenRequests),
  );
  for (const mode of spec.volumeLifecycleModes ?? []) {
    errors.push(...validateOptionalOneOf(mode, ['Persistent', 'Ephemeral'], 'spec.volumeLifecycleModes'));
  }
  if (period !== undefined && period < MIN_PERIOD_SECONDS) {
    const rule = `must be greater than or equal to ${MIN_PERIOD_SECONDS} seconds`;
    errors.push(fieldError.invalid('spec.nodeAllocatableUpdatePeriodSeconds', period, rule));
  }
  // Upstream documents that this combination is rejected; the wording is this project's.
  if (serviceAccountTokenInSecrets !== undefined && (tokenRequests ?? []).length === 0) {
    const at = 'spec.serviceAccountTokenInSecrets';
    errors.push(fieldError.invalid(at, serviceAccountTokenInSecrets, 'may not be set without tokenRequests'));
  }
  return errors;
}

function validateTokens(requests: CSIDriverSpec['tokenRequests']): FieldError[] {
  const audiences = new Set<string>();
  return (requests ?? []).flatMap((request, index) => {
    const at = `spec.tokenRequests[${index}]`;
    const errors: FieldError[] = [];
    if (audiences.has(request.audience)) return [fieldError.duplicate(`${at}.audience`, request.audience)];
    audiences.add(request.audience);
    const seconds = request.expirationSeconds;
    if (seconds === undefined) return errors;
    if (seconds < MIN_TOKEN_SECONDS) {
      errors.push(
        fieldError.invalid(`${at}.expirationSeconds`, seconds, 'may not specify a duration less than 10 minutes'),
      );
    }
    if (seconds > MAX_TOKEN_SECONDS) {
      errors.push(
        fieldError.invalid(`${at}.expirationSeconds`, seconds, 'may not specify a duration larger than 2^32 seconds'),
      );
    }
    return errors;
  });
}

function flag(name: string, description: string, field: keyof CSIDriverSpec): Column<CSIDriver> {
  return column<CSIDriver>(name, description, (driver) => driver.spec?.[field] === true, { type: 'boolean' });
}

export const csiDrivers: KindDefinition<CSIDriver> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'CSIDriver',
  plural: 'csidrivers',
  singular: 'csidriver',
  listKind: 'CSIDriverList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.storage.v1.CSIDriver',
  skeleton: { spec: {} },
  returnsDeleted: true,
  storagePrefix: 'csidrivers',
  allowUnconditionalUpdate: false,
  aliases: [sameShape('storage.k8s.io', 'v1beta1', '1.19', '1.22')],
  setDefaults(driver) {
    driver.spec ??= {};
    const spec = driver.spec;
    spec.attachRequired ??= true;
    spec.podInfoOnMount ??= false;
    spec.storageCapacity ??= false;
    spec.fsGroupPolicy ??= 'ReadWriteOnceWithFSType';
    if ((spec.volumeLifecycleModes ?? []).length === 0) spec.volumeLifecycleModes = ['Persistent'];
    spec.requiresRepublish ??= false;
    spec.seLinuxMount ??= false;
  },
  strategy: {
    prepareForCreate(driver) {
      metadataOf(driver).generation = 1;
      dropUnsupported(driver);
    },
    prepareForUpdate(driver, old) {
      dropUnsupported(driver, old);
      bumpGeneration(driver, old);
    },
    validate,
    validateUpdate: (driver, old) => [
      ...validateImmutable(driver.spec?.attachRequired, old.spec?.attachRequired, 'spec.attachedRequired'),
      ...validateImmutable(
        driver.spec?.volumeLifecycleModes,
        old.spec?.volumeLifecycleModes,
        'spec.volumeLifecycleModes',
      ),
    ],
  },
  columns: [
    nameColumn,
    flag('AttachRequired', 'Whether volumes are attached before they are mounted.', 'attachRequired'),
    flag('PodInfoOnMount', 'Whether the driver requires pod information when mounting.', 'podInfoOnMount'),
    flag('StorageCapacity', 'Whether the driver publishes its capacity.', 'storageCapacity'),
    column<CSIDriver>('TokenRequests', 'Audiences of the tokens for the driver.', (driver) => {
      const audiences = (driver.spec?.tokenRequests ?? []).map(({ audience }) => audience);
      return audiences.length === 0 ? '<unset>' : audiences.join(',');
    }),
    flag('RequiresRepublish', 'Whether volumes are republished periodically.', 'requiresRepublish'),
    column<CSIDriver>('Modes', 'Lifecycle modes of the volumes.', (driver) => {
      const modes = driver.spec?.volumeLifecycleModes ?? [];
      return modes.length === 0 ? '<none>' : modes.join(',');
    }),
    ageColumn,
  ],
};
