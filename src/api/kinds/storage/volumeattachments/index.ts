/** Volume attachments. Source: k8s.io/kubernetes/pkg/registry/storage/volumeattachment, pkg/apis/storage/validation. */

import { dns1123SubdomainErrors } from '../../../../base/names.ts';
import type { VolumeAttachment, VolumeError } from '../../../generated/storage/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet, utf8Length, validateImmutable } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateDriverName } from '../../../validation/csi.ts';
import { validateNameRule, validateRange } from '../../../validation/scalars.ts';
import { setVolumeSpecDefaults, validateVolumeSpec } from '../../../volumes/persistent.ts';

const MAX_METADATA_BYTES = 256 * 1024;
const MAX_MESSAGE_BYTES = 1024;
const MAX_ERROR_CODE = 2 ** 31 - 1;

const { strategy, statusStrategy } = specStatusStrategies<VolumeAttachment>({
  generations: false,
  initialStatus: () => ({ attached: false }),
  validate,
  validateCreate,
  validateUpdate: (each, old) => validateImmutable(each.spec, old.spec, 'spec'),
  validateStatusUpdate,
});

function validate(each: VolumeAttachment): FieldError[] {
  const errors = isSet(each.spec?.attacher) ? [] : [fieldError.required('spec.attacher')];
  const source = each.spec?.source ?? {};
  const { inlineVolumeSpec, persistentVolumeName } = source;
  const at = 'spec.source';
  if (inlineVolumeSpec === undefined && persistentVolumeName === undefined) {
    errors.push(fieldError.required(at, 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'));
  } else if (inlineVolumeSpec !== undefined && persistentVolumeName !== undefined) {
    errors.push(fieldError.forbidden(at, 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'));
  } else if (inlineVolumeSpec !== undefined) {
    errors.push(...validateVolumeSpec(inlineVolumeSpec, `${at}.inlineVolumeSpec`, true));
  } else if (!isSet(persistentVolumeName)) {
    errors.push(fieldError.required(`${at}.persistentVolumeName`, 'must specify non empty persistentVolumeName'));
  }
  const node = each.spec?.nodeName;
  if (!isSet(node)) errors.push(fieldError.invalid('spec.nodeName', '', dns1123SubdomainErrors('')[0] ?? ''));
  else errors.push(...validateNameRule(node, dns1123SubdomainErrors, 'spec.nodeName'));
  return errors;
}

/** Rules that apply to new attachments only. */
function validateCreate({ spec }: VolumeAttachment): FieldError[] {
  const volume = spec?.source?.persistentVolumeName;
  return [
    ...validateDriverName(spec?.attacher ?? '', 'spec.attacher'),
    ...(volume === undefined
      ? []
      : validateNameRule(volume, dns1123SubdomainErrors, 'spec.source.persistentVolumeName')),
  ];
}

function validateStatusUpdate(each: VolumeAttachment): FieldError[] {
  const { attachmentMetadata = {}, attachError, detachError } = each.status ?? { attached: false };
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const [name, value] of Object.entries(attachmentMetadata)) bytes += utf8Length(name) + utf8Length(value);
  if (bytes > MAX_METADATA_BYTES) errors.push(fieldError.tooLong('status.attachmentMetadata', MAX_METADATA_BYTES));
  return [
    ...errors,
    ...validateError(attachError, 'status.attachError'),
    ...validateError(detachError, 'status.detachError'),
  ];
}

function validateError(error: (VolumeError & { errorCode?: number }) | undefined, at: string): FieldError[] {
  const errors: FieldError[] = [];
  // As upstream, the error shows the limit for metadata.
  if (utf8Length(error?.message ?? '') > MAX_MESSAGE_BYTES) {
    errors.push(fieldError.tooLong(`${at}.message`, MAX_METADATA_BYTES));
  }
  return [...errors, ...validateRange(error?.errorCode, 0, MAX_ERROR_CODE, `${at}.errorCode`)];
}

export const volumeAttachments: KindDefinition<VolumeAttachment> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'VolumeAttachment',
  plural: 'volumeattachments',
  singular: 'volumeattachment',
  listKind: 'VolumeAttachmentList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.storage.v1.VolumeAttachment',
  skeleton: { spec: { source: {} }, status: {} },
  returnsDeleted: true,
  storagePrefix: 'volumeattachments',
  allowUnconditionalUpdate: false,
  aliases: [sameShape('storage.k8s.io', 'v1beta1', '1.19', '1.22')],
  setDefaults(each) {
    const inline = each.spec?.source?.inlineVolumeSpec;
    if (inline === undefined) return;
    // The reclaim policy does not apply to an inline volume, so its default must not be added.
    const policy = inline.persistentVolumeReclaimPolicy;
    setVolumeSpecDefaults(inline);
    if (policy === undefined) delete inline.persistentVolumeReclaimPolicy;
  },
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    {
      ...column<VolumeAttachment>('Attacher', 'The driver that attaches.', (each) => each.spec?.attacher ?? ''),
      format: 'name',
    },
    column<VolumeAttachment>('PV', 'The volume.', (each) => each.spec?.source?.persistentVolumeName ?? ''),
    column<VolumeAttachment>('Node', 'The node.', (each) => each.spec?.nodeName ?? ''),
    column<VolumeAttachment>('Attached', 'Whether the volume is attached.', (each) => each.status?.attached ?? false, {
      type: 'boolean',
    }),
    ageColumn,
  ],
};
