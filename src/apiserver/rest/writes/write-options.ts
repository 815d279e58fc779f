/** Parses and validates the query parameters of writes. */

import { type FieldError, fieldError, invalid } from '../../../api/meta/field-error.ts';
import type { ApiError } from '../../../api/meta/status.ts';
import { BoundedMap } from '../../../base/bounded-map.ts';
import { isTrue } from '../../http/request-info.ts';
import type { WriteOptions } from '../../pipeline/write-options.ts';

const MAX_FIELD_MANAGER = 128;
const VALIDATIONS = ['Ignore', 'Warn', 'Strict'] as const;

/** Error of invalid options. `kind`: CreateOptions, UpdateOptions, PatchOptions or DeleteOptions. */
export function invalidOptions(kind: string, failures: readonly FieldError[]): ApiError {
  return invalid({ group: 'meta.k8s.io', kind }, '', failures);
}

/** Validates the `dryRun` values. As in upstream, the error shows all requested values. */
export function validateDryRun(requested: readonly string[]): FieldError[] {
  if (requested.every((each) => each === 'All')) return [];
  const shown = JSON.stringify(requested.map((each) => each.slice(0, 64)));
  const message = `Unsupported value: ${shown}: supported values: "All"`;
  return [{ type: 'FieldValueNotSupported', field: 'dryRun', message }];
}

function validateManager(manager: string): FieldError[] {
  if (manager.length > MAX_FIELD_MANAGER) return [fieldError.tooLong('fieldManager', MAX_FIELD_MANAGER)];
  const at = [...manager].findIndex(
    (each) => !/[\x20-\x7e]/.test(each) && !/^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u.test(each),
  );
  if (at < 0) return [];
  const code = [...manager][at]?.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0');
  return [fieldError.invalid('fieldManager', manager, `invalid character U+${code} (at position ${at})`)];
}

export function parseWriteOptions(kind: string, query: URLSearchParams, userAgent: string | undefined): WriteOptions {
  if (query.size === 0) return usualOptions(userAgent);
  const validation = VALIDATIONS.find((each) => each === (query.get('fieldValidation') || 'Warn'));
  const manager = query.get('fieldManager') ?? '';
  const failures = [...validateManager(manager), ...validateDryRun(query.getAll('dryRun'))];
  if (validation === undefined) {
    const requested = (query.get('fieldValidation') ?? '').slice(0, 64);
    failures.push(fieldError.notSupported('fieldValidation', requested, ['', 'Ignore', 'Strict', 'Warn']));
  }
  if (failures.length > 0 || validation === undefined) throw invalidOptions(kind, failures);
  return {
    dryRun: query.has('dryRun'),
    validation,
    fieldManager: manager === '' ? managerOfUserAgent(userAgent) : manager,
    force: isTrue(query.get('force')),
  };
}

const MAX_REMEMBERED_AGENT = 512;
const usual = new BoundedMap<string | undefined, WriteOptions>(256);

/** Options of a write without query parameters, cached per user agent. */
function usualOptions(userAgent: string | undefined): WriteOptions {
  let options = usual.get(userAgent);
  if (options === undefined) {
    options = { dryRun: false, validation: 'Warn', fieldManager: managerOfUserAgent(userAgent), force: false };
    if ((userAgent ?? '').length > MAX_REMEMBERED_AGENT) return options;
    usual.set(userAgent, options);
  }
  return options;
}

/** The default field manager: as in upstream, the first part of the user agent. */
function managerOfUserAgent(userAgent: string | undefined): string {
  const name = (userAgent ?? '').split('/', 1)[0]?.replaceAll(/[^\x20-\x7e]/g, '') ?? '';
  return name === '' ? 'unknown' : name.slice(0, MAX_FIELD_MANAGER);
}
