/**
 * Converts a rendered config to the files and links of a host: files, units with drop-ins, masked and enabled units,
 * SSH keys. The tree includes the links that systemctl would create, so that one transaction applies the whole config.
 * Source: systemd.unit(5), "[Install] Section Options"; openshift/machine-config-operator pkg/daemon/file_writers.go.
 */
import { CodedError } from '../../../../base/errors.ts';
import { decodeContents } from './contents.ts';
import { guardedPath } from './guarded.ts';
import type { Entry, Tree, UnitFile } from './port.ts';
import type { IgnitionConfig, IgnitionOwner, IgnitionUnit, Inflate } from './types.ts';

export interface TreeOptions {
  readonly inflate: Inflate;
  /** Home directory of an account of the host; undefined if the account does not exist. */
  readonly homeOf: (user: string) => string | undefined;
  /** Unit file of the host by name of the unit; undefined if the host has none. */
  readonly unitFile: (name: string) => UnitFile | undefined;
}

export const UNIT_DIRECTORY = '/etc/systemd/system';
const FILE_MODE = 0o644;
const MAX_ALSO = 32;

/** Computes the tree. Throws CodedError 'bad-tree' if the host lacks an account or a unit that the config requires. */
export function treeOf(config: IgnitionConfig, options: TreeOptions): Tree {
  const tree = new Map<string, Entry>();
  for (const file of config.storage?.files ?? []) {
    const decoded = decodeContents(file.contents, file.path, options.inflate);
    if (!('bytes' in decoded)) throw new CodedError('bad-tree', `${decoded.error.field}: ${decoded.error.message}`);
    tree.set(file.path, {
      kind: 'file',
      bytes: decoded.bytes,
      mode: file.mode ?? FILE_MODE,
      user: ownerOf(file.user),
      group: ownerOf(file.group),
    });
  }
  addUnits(tree, config.systemd?.units ?? [], options);
  for (const { name, sshAuthorizedKeys = [] } of config.passwd?.users ?? []) {
    if (sshAuthorizedKeys.length === 0) continue;
    const home = options.homeOf(name);
    if (home === undefined) {
      const fix = `create the account or set machineConfig.sshUser of the bootstrap file`;
      throw new CodedError('bad-tree', `passwd.users: user ${name} not found on this host; ${fix}`);
    }
    const text = `${sshAuthorizedKeys.map((key) => key.trim()).join('\n')}\n`;
    tree.set(`${home}/.ssh/authorized_keys`, {
      ...textFile(text, 0o600),
      user: name,
      group: name,
      directoryMode: 0o700,
    });
  }
  return tree;
}

const ownerOf = (owner: IgnitionOwner | undefined): string | number =>
  owner?.id ?? ((owner?.name ?? '') === '' ? 0 : (owner?.name ?? 0));

const textFile = (text: string, mode = FILE_MODE): Extract<Entry, { kind: 'file' }> => ({
  kind: 'file',
  bytes: new TextEncoder().encode(text),
  mode,
  user: 0,
  group: 0,
});

function addUnits(tree: Map<string, Entry>, units: readonly IgnitionUnit[], options: TreeOptions): void {
  const own = new Map(
    units.flatMap(({ name, contents }): [string, UnitFile][] =>
      isFilled(contents) ? [[name, { path: `${UNIT_DIRECTORY}/${name}`, text: contents }]] : [],
    ),
  );
  const fileOf = (name: string): UnitFile | undefined => own.get(name) ?? options.unitFile(name);
  for (const unit of units) {
    const path = `${UNIT_DIRECTORY}/${unit.name}`;
    if (unit.mask === true) tree.set(path, { kind: 'link', target: '/dev/null' });
    else if (isFilled(unit.contents)) tree.set(path, textFile(unit.contents));
    for (const dropin of unit.dropins ?? [])
      if (isFilled(dropin.contents)) tree.set(`${path}.d/${dropin.name}`, textFile(dropin.contents));
    // A masked unit cannot be enabled, so `enabled` is ignored.
    if (unit.enabled === undefined || unit.mask === true) continue;
    for (const [link, target] of enablementLinks(unit.name, fileOf, unit.enabled)) {
      // Aliases are checked too, because an alias could replace or remove a unit of the host.
      const why = guardedPath(link);
      if (why !== undefined) {
        if (!unit.enabled) continue;
        throw new CodedError('bad-tree', `systemd.units: ${unit.name}: [Install] changes ${link}: ${why}`);
      }
      tree.set(link, unit.enabled ? { kind: 'link', target } : { kind: 'absent' });
    }
  }
}

/** Links that `systemctl enable` creates for the unit, with their targets. */
function enablementLinks(
  unit: string,
  fileOf: (name: string) => UnitFile | undefined,
  needed: boolean,
): Map<string, string> {
  const links = new Map<string, string>();
  const pending = [unit];
  const seen = new Set<string>();
  for (let name = pending.shift(); name !== undefined && seen.size < MAX_ALSO; name = pending.shift()) {
    if (seen.has(name)) continue;
    seen.add(name);
    const file = fileOf(name) ?? fileOf(templateOf(name));
    if (file === undefined) {
      // If the unit is to be disabled and does not exist, it has no links.
      if (!needed) continue;
      throw new CodedError('bad-tree', `systemd.units: unit ${name} cannot be enabled; no file of it is on this host`);
    }
    const install = installSection(file.text);
    pending.push(...(install.get('Also') ?? []));
    addLinks(links, name, install, file.path);
  }
  return links;
}

function addLinks(
  links: Map<string, string>,
  name: string,
  install: ReadonlyMap<string, readonly string[]>,
  target: string,
): void {
  const instance = isTemplate(name) ? install.get('DefaultInstance')?.[0] : undefined;
  const full = instance === undefined ? name : name.replace('@.', `@${instance}.`);
  // A template needs a default instance to be enabled. Only its aliases can be created without one.
  if (isTemplate(full) && !install.has('Alias')) return;
  const kinds = [
    ['WantedBy', 'wants'],
    ['RequiredBy', 'requires'],
    ['UpheldBy', 'upholds'],
  ] as const;
  for (const [field, suffix] of kinds)
    for (const other of install.get(field) ?? [])
      links.set(`${UNIT_DIRECTORY}/${expanded(other, full)}.${suffix}/${full}`, target);
  for (const alias of install.get('Alias') ?? []) links.set(`${UNIT_DIRECTORY}/${expanded(alias, full)}`, target);
}

/** Expands the specifiers that may occur in [Install]. Source: systemd.unit(5), "Specifiers". */
function expanded(name: string, unit: string): string {
  const dot = unit.lastIndexOf('.');
  const [prefix = '', instance = ''] = unit.slice(0, dot).split('@');
  const values: Readonly<Record<string, string>> = {
    '%%': '%',
    '%n': unit,
    '%N': unit.slice(0, dot),
    '%p': prefix,
    '%i': instance,
    '%I': instance,
  };
  const result = name.replaceAll(/%./g, (specifier) => values[specifier] ?? specifier);
  if (!/^[A-Za-z0-9:_.\\@-]+$/.test(result) || result.startsWith('.'))
    throw new CodedError(
      'bad-tree',
      `systemd.units: ${unit}: [Install] refers to ${JSON.stringify(name)}, which is not a unit name`,
    );
  return result;
}

/** Values of the assignments in the [Install] section, by key. An empty value clears earlier values of the key. */
function installSection(text: string): ReadonlyMap<string, readonly string[]> {
  const fields = new Map<string, string[]>();
  let section = '';
  for (const line of text.replaceAll(/\\\r?\n/g, ' ').split('\n')) {
    const trimmed = line.trim();
    if (trimmed.startsWith('[')) section = trimmed;
    else if (section === '[Install]' && !/^[#;]/.test(trimmed)) {
      const at = trimmed.indexOf('=');
      if (at <= 0) continue;
      const name = trimmed.slice(0, at).trim();
      const values = trimmed
        .slice(at + 1)
        .split(/\s+/)
        .filter((value) => value !== '');
      fields.set(name, values.length === 0 ? [] : [...(fields.get(name) ?? []), ...values]);
    }
  }
  return fields;
}

const isTemplate = (name: string): boolean => name.includes('@.');
const templateOf = (name: string): string => name.replace(/@[^.]*(?=\.[^.]*$)/, '@');
const isFilled = (text: string | undefined): text is string => text !== undefined && text !== '';
