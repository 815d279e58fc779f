/**
 * Validation of iSCSI volumes. Source: k8s.io/kubernetes/pkg/apis/core/validation validateISCSIVolumeSource,
 * validateISCSIPersistentVolumeSource.
 */
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { validateRange } from '../validation/scalars.ts';

const FORMATS: Readonly<Record<string, RegExp>> = {
  iqn: /^iqn\.\d{4}-\d{2}\.([A-Za-z0-9\-.]+)(:[^,;*&$|\s]+)$/,
  eui: /^eui.[A-Za-z0-9]{16}$/,
  naa: /^naa.[A-Za-z0-9]{32}$/,
};
const MAX_LUN = 255;

interface Source {
  readonly targetPortal?: string;
  readonly iqn?: string;
  readonly lun?: number;
  readonly chapAuthDiscovery?: boolean;
  readonly chapAuthSession?: boolean;
  readonly secretRef?: { readonly name?: string };
  readonly initiatorName?: string;
}

export function validateIscsi(source: Source, at: string, persistent: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const { targetPortal, iqn, lun, secretRef, initiatorName } = source;
  const unknown = persistent ? 'must be valid format' : 'must be valid format starting with iqn, eui, or naa';
  if (!isSet(targetPortal)) errors.push(fieldError.required(`${at}.targetPortal`));
  if (!isSet(iqn)) errors.push(fieldError.required(`${at}.iqn`));
  else errors.push(...validateName(iqn, `${at}.iqn`, unknown));
  errors.push(...validateRange(lun ?? 0, 0, MAX_LUN, `${at}.lun`));
  if ((source.chapAuthDiscovery === true || source.chapAuthSession === true) && secretRef === undefined) {
    errors.push(fieldError.required(`${at}.secretRef`));
  }
  if (persistent && secretRef !== undefined && !isSet(secretRef.name)) {
    errors.push(fieldError.required(`${at}.secretRef.name`));
  }
  if (initiatorName !== undefined) errors.push(...validateName(initiatorName, `${at}.initiatorname`, unknown));
  return errors;
}

function validateName(name: string, at: string, unknown: string): FieldError[] {
  const format = FORMATS[name.slice(0, 3)];
  if (format === undefined) return [fieldError.invalid(at, name, unknown)];
  return format.test(name) ? [] : [fieldError.invalid(at, name, 'must be valid format')];
}

const DEFAULT_PORT = 3260;

/** Adds the default port to `192.0.2.1`; `192.0.2.1:3260` and `[2001:db8::1]:3260` are unchanged. */
export const portalWithPort = (portal: string): string =>
  /^(?:\[.*\]|[^:]*):\d+$/.test(portal) ? portal : `${portal}:${DEFAULT_PORT}`;
