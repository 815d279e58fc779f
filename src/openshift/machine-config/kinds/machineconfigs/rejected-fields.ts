/**
 * Parts of an Ignition configuration that no host can apply. As in upstream, the API server stores them, the pool
 * renders them, and hosts report Unreconcilable. In addition, the API server returns a warning. Source: `reconcilable`
 * in pkg/daemon/update.go of openshift/machine-config-operator.
 */
import type { JsonObject, JsonValue } from '../../../../api/meta/object.ts';

const REFUSED = [
  'storage.disks',
  'storage.raid',
  'storage.filesystems',
  'storage.luks',
  'storage.links',
  'storage.directories',
  'passwd.groups',
  'ignition.config.append',
  'ignition.config.merge',
  'ignition.config.replace',
] as const;

const MAX_WARNINGS = 10;

/** Paths below `config` that no host can apply. At most ten paths are returned. */
export function refusedParts(config: JsonObject): string[] {
  const found = REFUSED.filter((path) => isFilled(at(config, path.split('.'))));
  const files = at(config, ['storage', 'files']);
  const appending = !Array.isArray(files)
    ? []
    : files.flatMap((file, index) => (isFilled(at(file, ['append'])) ? [`storage.files[${index}].append`] : []));
  return [...found, ...appending].slice(0, MAX_WARNINGS);
}

function at(value: JsonValue | undefined, path: readonly string[]): JsonValue | undefined {
  let current: JsonValue | undefined = value;
  for (const name of path) {
    if (typeof current !== 'object' || current === null || Array.isArray(current)) return undefined;
    current = Object.hasOwn(current, name) ? current[name] : undefined;
  }
  return current;
}

function isFilled(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null || value === false || value === '') return false;
  return typeof value !== 'object' || Object.values(value).some(isFilled);
}
