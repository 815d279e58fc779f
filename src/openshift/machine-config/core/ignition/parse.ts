/**
 * Parses and validates the Ignition config of a MachineConfig. A finding is either invalid Ignition (RenderDegraded in
 * upstream), or a valid setting that cannot be changed on a running host (Unreconcilable in upstream). Source: Ignition
 * configuration specification 3.4.0; openshift/machine-config-operator ValidateIgnition.
 */
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { decodeContents, MAX_CONFIG_BYTES } from './contents.ts';
import { guardedPath, guardedUnit, isCleanPath, isDropinName, isUnitName } from './guarded.ts';
import { CONFIG, checkShape, type Findings, isRecord } from './schema.ts';
import type { IgnitionConfig, IgnitionFile, IgnitionOwner, IgnitionUnit, IgnitionUser, Inflate } from './types.ts';

/** Version in rendered configs. It is the newest version that every release since OpenShift 4.10 supports. */
export const RENDERED_VERSION = '3.2.0';
const SSH_USER = 'core';

const VERSION = /^3\.[0-4]\.0$/;
const MAX_MODE = 0o777;
const MAX_KEY_LENGTH = 16 * 1024;

export interface ParseOptions {
  readonly inflate: Inflate;
  /** Field path of the config in its object. */
  readonly path?: string;
  /** The only user whose SSH keys can be configured. Default: `core`. */
  readonly sshUser?: string;
  /**
   * Cache of results by config object, so that each config is parsed once. Config objects must not change. Default: no
   * cache.
   */
  readonly parsed?: WeakMap<object, ParsedIgnition>;
}

export interface ParsedIgnition {
  /** The parsed config; undefined if `invalid` contains errors. If no config is given, it is empty. */
  readonly config: IgnitionConfig | undefined;
  readonly invalid: readonly FieldError[];
  readonly refused: readonly FieldError[];
}

/** Parses spec.config of a MachineConfig. Invalid input is reported in the result and never causes an exception. */
export function parseIgnition(value: unknown, options: ParseOptions): ParsedIgnition {
  if (options.parsed === undefined || !isRecord(value)) return parseNow(value, options);
  const known = options.parsed.get(value);
  if (known !== undefined) return known;
  const parsed = parseNow(value, options);
  options.parsed.set(value, parsed);
  return parsed;
}

function parseNow(value: unknown, options: ParseOptions): ParsedIgnition {
  const found: Findings = { invalid: [], refused: [] };
  if (value === undefined || value === null || isEmptyObject(value)) return { config: emptyConfig(), ...found };
  const path = options.path ?? 'spec.config';
  if (!checkVersion(value, path, found)) return { config: undefined, ...found };
  checkShape(value, CONFIG, path, found);
  // The following checks rely on correct types, so stop here if a type is wrong.
  if (found.invalid.length > 0) return { config: undefined, ...found };
  const config = withoutNulls(value) as IgnitionConfig;
  checkFiles(config.storage?.files ?? [], `${path}.storage.files`, options.inflate, found);
  checkUnits(config.systemd?.units ?? [], `${path}.systemd.units`, found);
  checkUsers(config.passwd?.users ?? [], `${path}.passwd.users`, options.sshUser ?? SSH_USER, found);
  return { config: found.invalid.length > 0 ? undefined : config, ...found };
}

/** Formats errors as one line of limited length. */
export function describeErrors(errors: readonly FieldError[]): string {
  const shown = errors.slice(0, 3).map(({ field, message }) => `${field}: ${message}`);
  return errors.length > 3 ? `${shown.join('; ')}; and ${errors.length - 3} more` : shown.join('; ');
}

export const emptyConfig = (): IgnitionConfig => ({ ignition: { version: RENDERED_VERSION } });

/** Whether the config is empty, as in a fragment that only sets kernel arguments. */
const isEmptyObject = (value: unknown): boolean => isRecord(value) && Object.keys(value).length === 0;

function checkVersion(value: unknown, path: string, found: Findings): boolean {
  const section = isRecord(value) ? value['ignition'] : undefined;
  const version = isRecord(section) ? section['version'] : undefined;
  if (typeof version === 'string' && VERSION.test(version)) return true;
  const known = typeof version === 'string' && /^\d+\.\d+\.\d+/.test(version);
  const detail = `parsing Ignition config failed: ${known ? 'unknown' : 'invalid'} version. Supported spec versions: 3.0, 3.1, 3.2, 3.3, 3.4`;
  found.invalid.push(fieldError.invalid(`${path}.ignition.version`, version ?? '', detail));
  return false;
}

function checkFiles(files: readonly IgnitionFile[], path: string, inflate: Inflate, found: Findings): void {
  const seen = new Set<string>();
  let total = 0;
  for (const [index, file] of files.entries()) {
    const at = `${path}[${index}]`;
    const name = file.path ?? '';
    if (name === '') found.invalid.push(fieldError.required(`${at}.path`, 'path not specified'));
    else if (!isCleanPath(name)) {
      const detail = 'must be absolute, without .., . or empty parts and control characters';
      found.invalid.push(fieldError.invalid(`${at}.path`, name, detail));
    } else if (seen.has(name)) found.invalid.push(fieldError.duplicate(`${at}.path`, name));
    else {
      const why = guardedPath(name);
      if (why !== undefined) found.refused.push(fieldError.forbidden(`${at}.path`, `${name}: ${why}`));
    }
    seen.add(name);
    checkMode(file, at, found);
    checkOwner(file.user, `${at}.user`, found);
    checkOwner(file.group, `${at}.group`, found);
    const decoded = decodeContents(file.contents, `${at}.contents`, inflate);
    if ('bytes' in decoded) total += decoded.bytes.length;
    else (decoded.refused ? found.refused : found.invalid).push(decoded.error);
    if (total > MAX_CONFIG_BYTES) {
      const detail = `all files together must have at most ${MAX_CONFIG_BYTES} bytes`;
      found.invalid.push(fieldError.invalid(path, total, detail));
      return;
    }
  }
  checkNesting(files, path, found);
}

/** Rejects a file if another file has the path of one of its parent directories. */
function checkNesting(files: readonly IgnitionFile[], path: string, found: Findings): void {
  const paths = new Set(files.map((file) => file.path));
  for (const [index, file] of files.entries()) {
    const parts = (file.path ?? '').split('/');
    for (let depth = 2; depth < parts.length; depth += 1) {
      const parent = parts.slice(0, depth).join('/');
      if (!paths.has(parent)) continue;
      found.invalid.push(fieldError.invalid(`${path}[${index}].path`, file.path, `${parent} is a file of this config`));
      break;
    }
  }
}

function checkMode({ mode, path }: IgnitionFile, at: string, found: Findings): void {
  if (mode === undefined || (mode >= 0 && mode <= MAX_MODE)) return;
  const detail = `invalid mode 0${mode.toString(8)} for ${path}, cannot exceed 0777`;
  found.invalid.push(fieldError.invalid(`${at}.mode`, mode, detail));
}

function checkOwner(owner: IgnitionOwner | undefined, at: string, found: Findings): void {
  if (owner?.id !== undefined && (owner.name ?? '') !== '')
    found.invalid.push(fieldError.invalid(at, owner, 'cannot set both id and name'));
  if (owner?.id !== undefined && (owner.id < 0 || owner.id > 0xfffffffe))
    found.invalid.push(fieldError.invalid(`${at}.id`, owner.id, 'must be between 0 and 4294967294'));
  if (owner?.name !== undefined && owner.name !== '' && !/^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,255}\$?$/.test(owner.name))
    found.invalid.push(fieldError.invalid(`${at}.name`, owner.name, 'must be the name of an account'));
}

function checkUnits(units: readonly IgnitionUnit[], path: string, found: Findings): void {
  const seen = new Set<string>();
  for (const [index, unit] of units.entries()) {
    const at = `${path}[${index}]`;
    const name = unit.name ?? '';
    if (!isUnitName(name)) {
      const detail = 'invalid systemd unit extension or name; must be a name of systemd.unit(5) without a slash';
      found.invalid.push(fieldError.invalid(`${at}.name`, name, detail));
    } else if (seen.has(name)) found.invalid.push(fieldError.duplicate(`${at}.name`, name));
    const why = guardedUnit(name);
    if (why !== undefined) found.refused.push(fieldError.forbidden(`${at}.name`, `${name}: ${why}`));
    seen.add(name);
    checkUnitText(unit.contents, `${at}.contents`, found);
    const dropins = new Set<string>();
    for (const [number, dropin] of (unit.dropins ?? []).entries()) {
      const inside = `${at}.dropins[${number}]`;
      if (!isDropinName(dropin.name ?? '')) {
        const detail = 'invalid systemd drop-in extension or name; must end with .conf and have no slash';
        found.invalid.push(fieldError.invalid(`${inside}.name`, dropin.name ?? '', detail));
      } else if (dropins.has(dropin.name)) found.invalid.push(fieldError.duplicate(`${inside}.name`, dropin.name));
      dropins.add(dropin.name);
      checkUnitText(dropin.contents, `${inside}.contents`, found);
    }
  }
}

/**
 * Checks the syntax of systemd.syntax(7): sections, assignments, comments, and lines that end with a backslash and
 * continue on the next line. Text before the first section is accepted, because systemd and Ignition ignore it.
 */
function checkUnitText(text: string | undefined, at: string, found: Findings): void {
  if (text === undefined) return;
  if (text.includes('\0')) {
    found.invalid.push(fieldError.invalid(at, '…', 'must not contain NUL'));
    return;
  }
  let continued = false;
  let inSection = false;
  for (const [index, line] of text.split('\n').entries()) {
    const trimmed = line.trim();
    const comment = /^[#;]/.test(trimmed);
    const isSection = /^\[[^[\]]+\]$/.test(trimmed);
    inSection ||= trimmed.startsWith('[');
    if (inSection && !continued && trimmed !== '' && !comment && !isSection && !/^[^=\s][^=]*=/.test(trimmed)) {
      const detail = `invalid unit content: line ${index + 1} is neither a section nor an assignment`;
      found.invalid.push(fieldError.invalid(at, trimmed.slice(0, 100), detail));
      return;
    }
    // A comment line between continued lines does not end the continuation.
    continued = continued && comment ? continued : !comment && trimmed.endsWith('\\');
  }
}

function checkUsers(users: readonly IgnitionUser[], path: string, sshUser: string, found: Findings): void {
  const seen = new Set<string>();
  for (const [index, user] of users.entries()) {
    const at = `${path}[${index}]`;
    const name = user.name ?? '';
    if (name === '') found.invalid.push(fieldError.required(`${at}.name`));
    else if (seen.has(name)) found.invalid.push(fieldError.duplicate(`${at}.name`, name));
    else if (name !== sshUser) {
      const detail = `ignition passwd user section contains unsupported changes: non-${sshUser} user`;
      found.refused.push(fieldError.forbidden(`${at}.name`, detail));
    }
    seen.add(name);
    for (const [number, key] of (user.sshAuthorizedKeys ?? []).entries()) {
      // A key must not contain a line break, which would add another key or options.
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
      if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(key.trimEnd()) || key.length > MAX_KEY_LENGTH) {
        const detail = `must be one line of at most ${MAX_KEY_LENGTH} bytes`;
        found.invalid.push(fieldError.invalid(`${at}.sshAuthorizedKeys[${number}]`, key.slice(0, 40), detail));
      }
    }
  }
}

/** Returns a copy without fields that are null. As in Go, such fields count as absent. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, item]) => (item === null ? [] : [[name, withoutNulls(item)]])),
  );
}
