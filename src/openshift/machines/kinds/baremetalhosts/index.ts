/**
 * Kind BareMetalHost: hosts of the hardware inventory. Source: metal3-io/baremetal-operator apis/metal3.io/v1alpha1 of
 * release 4.10.
 */

import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { isSet } from '../../../../api/meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../../api/registry/strategies.ts';
import { validateOneOf } from '../../../../api/validation/scalars.ts';
import { type BareMetalHost, HOST_GROUP, HOST_VERSION } from '../machine-types.ts';
import { sshAddressOf } from '../ssh-address.ts';

const CLEANING = ['metadata', 'disabled'];

function validate({ spec }: BareMetalHost): FieldError[] {
  const errors: FieldError[] = [];
  const { bmc, automatedCleaningMode, consumerRef } = spec ?? {};
  if (bmc !== undefined) {
    if (sshAddressOf(bmc.address ?? '') === undefined)
      errors.push(
        fieldError.invalid(
          'spec.bmc.address',
          bmc.address ?? '',
          'must be ssh://[USER@]HOST[:PORT], such as ssh://root@10.0.0.7',
        ),
      );
    if (!isSet(bmc.credentialsName)) errors.push(fieldError.required('spec.bmc.credentialsName'));
  }
  errors.push(...validateOneOf(automatedCleaningMode, CLEANING, 'spec.automatedCleaningMode'));
  if (consumerRef !== undefined && !isSet(consumerRef.name)) errors.push(fieldError.required('spec.consumerRef.name'));
  return errors;
}

const { strategy, statusStrategy } = specStatusStrategies<BareMetalHost>({
  initialStatus: () => ({ provisioning: { state: 'registering' } }),
  validate,
});

export const bareMetalHosts: KindDefinition<BareMetalHost> = {
  group: HOST_GROUP,
  version: HOST_VERSION,
  kind: 'BareMetalHost',
  plural: 'baremetalhosts',
  singular: 'baremetalhost',
  listKind: 'BareMetalHostList',
  namespaced: true,
  shortNames: ['bmh', 'bmhost'],
  verbs: ALL_VERBS,
  schemaName: `io.metal3.${HOST_VERSION}.BareMetalHost`,
  skeleton: { spec: {}, status: {} },
  returnsDeleted: 'undocumented',
  storagePrefix: `${HOST_GROUP}/baremetalhosts`,
  setDefaults: (host) => {
    host.spec ??= {};
    host.spec.online ??= false;
    host.spec.automatedCleaningMode ||= 'metadata';
  },
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<BareMetalHost>('Status', 'Operational status.', ({ status }) => status?.operationalStatus ?? '', {
      wide: true,
    }),
    column<BareMetalHost>('State', 'Provisioning status.', ({ status }) => status?.provisioning?.state ?? ''),
    column<BareMetalHost>('Consumer', 'Consumer using this host.', ({ spec }) => spec?.consumerRef?.name ?? ''),
    column<BareMetalHost>('BMC', 'Address of the host.', ({ spec }) => spec?.bmc?.address ?? '', { wide: true }),
    column<BareMetalHost>(
      'Hardware_Profile',
      'The type of hardware detected.',
      ({ status }) => status?.hardwareProfile ?? '',
      { wide: true },
    ),
    column<BareMetalHost>('Online', 'Whether the host may be used.', ({ spec }) => String(spec?.online ?? false)),
    column<BareMetalHost>('Error', 'Type of the most recent error.', ({ status }) => status?.errorType ?? ''),
    ageColumn,
  ],
};
