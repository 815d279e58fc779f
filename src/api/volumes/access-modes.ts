/**
 * Access modes and classes of claims and volumes. Source: k8s.io/kubernetes/pkg/apis/core/validation,
 * pkg/apis/core/helper.
 */
import { dns1123SubdomainErrors } from '../../base/names.ts';
import { canonicalQuantity, tryParseQuantity } from '../../base/quantity.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { validateNameRule } from '../validation/scalars.ts';

const ACCESS_MODES = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];
const VOLUME_MODES = ['Block', 'Filesystem'];
const ABBREVIATED: readonly (readonly [mode: string, short: string])[] = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
];
const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';
const UNSET = '<unset>';

/** Abbreviated access modes, for example `RWO,ROX`, in upstream's order. */
export function accessModesText(modes: readonly string[] | undefined): string {
  return ABBREVIATED.filter(([mode]) => modes?.includes(mode) === true)
    .map(([, short]) => short)
    .join(',');
}

interface Classed {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec?: { readonly storageClassName?: string; readonly volumeAttributesClassName?: string };
}

/** Name of the storage class. Very old objects have it in an annotation. */
export function storageClassText(object: Classed): string {
  const annotations = object.metadata?.annotations ?? {};
  return annotations[CLASS_ANNOTATION] ?? object.spec?.storageClassName ?? '';
}

export function attributesClassText(object: Classed): string {
  return object.spec?.volumeAttributesClassName ?? UNSET;
}

export function volumeModeText(mode: string | undefined): string {
  return mode ?? UNSET;
}

export function capacityText(amounts: Readonly<Record<string, string>> | undefined): string {
  return canonicalQuantity(amounts?.['storage'] ?? '0');
}

export function validateAccessModes(modes: readonly string[] | undefined, path: string): FieldError[] {
  const errors = (modes ?? [])
    .filter((mode) => !ACCESS_MODES.includes(mode))
    .map((mode) => fieldError.notSupported(path, mode, ACCESS_MODES));
  if (modes?.includes('ReadWriteOncePod') === true && modes.some((mode) => mode !== 'ReadWriteOncePod')) {
    errors.push(fieldError.forbidden(path, 'may not use ReadWriteOncePod with other access modes'));
  }
  return errors;
}

export function validateVolumeMode(mode: string | undefined, path: string): FieldError[] {
  return mode === undefined || VOLUME_MODES.includes(mode) ? [] : [fieldError.notSupported(path, mode, VOLUME_MODES)];
}

export function validateClassName(name: string | undefined, path: string): FieldError[] {
  return isSet(name) ? validateNameRule(name, dns1123SubdomainErrors, path) : [];
}

export function validatePositiveQuantity(text: string, path: string): FieldError[] {
  const quantity = tryParseQuantity(text);
  return quantity === undefined || quantity.nanos <= 0n
    ? [fieldError.invalid(path, text, 'must be greater than zero')]
    : [];
}
