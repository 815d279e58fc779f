/**
 * Schema of an Ignition config. It lists the supported fields, and the valid fields that are rejected because hosts
 * cannot change them in place. All other fields are invalid. Source: Ignition configuration specification 3.4.0.
 */
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';

export type Shape =
  | { readonly kind: 'string' | 'integer' | 'boolean' }
  | { readonly kind: 'list'; readonly of: Shape }
  | { readonly kind: 'object'; readonly fields: Readonly<Record<string, Shape>> }
  /** Field that is valid in Ignition, but must be absent or empty here. */
  | { readonly kind: 'refused'; readonly why: string };

const STRING: Shape = { kind: 'string' };
const INTEGER: Shape = { kind: 'integer' };
const BOOLEAN: Shape = { kind: 'boolean' };
const list = (of: Shape): Shape => ({ kind: 'list', of });
const object = (fields: Readonly<Record<string, Shape>>): Shape => ({ kind: 'object', fields });
const refused = (why: string): Shape => ({ kind: 'refused', why });

const REMOTE = refused('remote sources are not fetched; write the contents into the config as a data: URL');
const PARTITIONING = refused('partitions and file systems are not changed in place; prepare them before installation');
const ACCOUNTS = refused('accounts of the host are not changed in place; only sshAuthorizedKeys is supported');
const OWNER = object({ id: INTEGER, name: STRING });

export const CONFIG: Shape = object({
  ignition: object({
    version: STRING,
    config: refused('other configs are not merged from here; create a MachineConfig for each'),
    proxy: REMOTE,
    security: REMOTE,
    timeouts: REMOTE,
  }),
  kernelArguments: refused('use spec.kernelArguments of the MachineConfig'),
  passwd: object({
    users: list(
      object({
        name: STRING,
        sshAuthorizedKeys: list(STRING),
        gecos: ACCOUNTS,
        groups: ACCOUNTS,
        homeDir: ACCOUNTS,
        noCreateHome: ACCOUNTS,
        noLogInit: ACCOUNTS,
        noUserGroup: ACCOUNTS,
        passwordHash: ACCOUNTS,
        primaryGroup: ACCOUNTS,
        shell: ACCOUNTS,
        shouldExist: ACCOUNTS,
        system: ACCOUNTS,
        uid: ACCOUNTS,
      }),
    ),
    groups: refused('groups of the host are not changed in place'),
  }),
  storage: object({
    files: list(
      object({
        path: STRING,
        overwrite: BOOLEAN,
        user: OWNER,
        group: OWNER,
        mode: INTEGER,
        contents: object({
          source: STRING,
          compression: STRING,
          verification: refused('data: URLs are not verified; omit the hash'),
          httpHeaders: REMOTE,
        }),
        append: refused('appending is not idempotent; write the whole contents'),
      }),
    ),
    directories: refused('directories are made for the files in them'),
    links: refused('links are not changed in place; write a file'),
    disks: PARTITIONING,
    filesystems: PARTITIONING,
    luks: PARTITIONING,
    raid: PARTITIONING,
  }),
  systemd: object({
    units: list(
      object({
        name: STRING,
        contents: STRING,
        enabled: BOOLEAN,
        mask: BOOLEAN,
        dropins: list(object({ name: STRING, contents: STRING })),
      }),
    ),
  }),
});

export interface Findings {
  /** Errors that make the config invalid, so it cannot be rendered. */
  readonly invalid: FieldError[];
  /** Settings that are valid in Ignition, but rejected by hosts. */
  readonly refused: FieldError[];
}

/** Checks types and field names. As in Go, null counts as absent. */
export function checkShape(value: unknown, shape: Shape, path: string, found: Findings): void {
  if (value === undefined || value === null) return;
  switch (shape.kind) {
    case 'refused':
      if (!isHollow(value)) found.refused.push(fieldError.forbidden(path, shape.why));
      return;
    case 'list':
      if (!Array.isArray(value)) {
        found.invalid.push(typeError(path, 'array', value));
        return;
      }
      for (const [index, item] of value.entries()) {
        if (item === null) found.invalid.push(fieldError.required(`${path}[${index}]`));
        else checkShape(item, shape.of, `${path}[${index}]`, found);
      }
      return;
    case 'object':
      if (!isRecord(value)) {
        found.invalid.push(typeError(path, 'object', value));
        return;
      }
      for (const [name, item] of Object.entries(value)) {
        const field = Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
        const at = path === '' ? name : `${path}.${name}`;
        if (field === undefined) found.invalid.push(fieldError.invalid(at, name, 'unknown field'));
        else checkShape(item, field, at, found);
      }
      return;
    case 'integer':
      if (!Number.isSafeInteger(value)) found.invalid.push(typeError(path, 'integer', value));
      return;
    default:
      if (typeof value !== shape.kind) found.invalid.push(typeError(path, shape.kind, value));
  }
}

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Whether a value contains nothing but empty sections. Some encoders write empty sections for fields that are not set.
 */
function isHollow(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return typeof value === 'object' && Object.values(value).every(isHollow);
}

function typeError(path: string, wanted: string, value: unknown): FieldError {
  const got = Array.isArray(value) ? 'array' : typeof value;
  return fieldError.invalid(path, got, `must be of type ${wanted}`);
}
