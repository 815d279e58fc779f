/**
 * Difference between two rendered MachineConfigs, and whether a running host can apply it. Source:
 * openshift/machine-config-operator pkg/controller/common/reconcile.go, `machineConfigDiff`.
 */
import { semanticEqual } from '../../../../api/meta/equality.ts';
import { describeErrors, emptyConfig, type ParseOptions, parseIgnition } from './parse.ts';
import type { IgnitionConfig, MachineConfigSpec } from './types.ts';

export interface ConfigChanges {
  /** Paths that were added, changed or removed, sorted. */
  readonly files: readonly string[];
  readonly units: readonly string[];
  readonly sshKeys: boolean;
  readonly kernelArguments: boolean;
  readonly kernelType: boolean;
  readonly osImageURL: boolean;
  readonly fips: boolean;
  readonly extensions: boolean;
}

export interface ConfigDifference {
  readonly changes: ConfigChanges;
  /** The parsed configs. `to` is undefined if the new config is invalid. */
  readonly from: IgnitionConfig;
  readonly to: IgnitionConfig | undefined;
  /** Reason why a running host cannot apply the change, as upstream words it; undefined if it can. */
  readonly unreconcilable: string | undefined;
}

const NO_CHANGES: ConfigChanges = {
  files: [],
  units: [],
  sshKeys: false,
  kernelArguments: false,
  kernelType: false,
  osImageURL: false,
  fips: false,
  extensions: false,
};

/**
 * Compares two configs.
 *
 * @param from Config of the host; undefined if the host has none.
 */
export function machineConfigDifference(
  from: MachineConfigSpec | undefined,
  to: MachineConfigSpec,
  options: ParseOptions,
): ConfigDifference {
  const before = parseIgnition(from?.config, options).config ?? emptyConfig();
  const parsed = parseIgnition(to.config, options);
  const after = parsed.config;
  if (after === undefined) {
    const unreconcilable = `invalid ignition V3 config found: ${describeErrors(parsed.invalid)}`;
    return { changes: NO_CHANGES, from: before, to: undefined, unreconcilable };
  }
  const changes: ConfigChanges = {
    files: changedKeys(before.storage?.files ?? [], after.storage?.files ?? [], ({ path }) => path),
    units: changedKeys(before.systemd?.units ?? [], after.systemd?.units ?? [], ({ name }) => name),
    sshKeys: !semanticEqual(before.passwd?.users, after.passwd?.users),
    kernelArguments: !semanticEqual(from?.kernelArguments, to.kernelArguments),
    kernelType: kernelType(from) !== kernelType(to),
    osImageURL: (from?.osImageURL ?? '') !== (to.osImageURL ?? ''),
    fips: (from?.fips ?? false) !== (to.fips ?? false),
    extensions: !semanticEqual(from?.extensions, to.extensions),
  };
  const refused = parsed.refused.length > 0 ? describeErrors(parsed.refused) : undefined;
  const reasons = [sectionReason(before, after), refused, hostReason(changes, to)];
  const unreconcilable = reasons.filter((reason) => reason !== undefined).join(': ');
  return { changes, from: before, to: after, unreconcilable: unreconcilable === '' ? undefined : unreconcilable };
}

/** Whether nothing has changed. */
export function isUnchanged(changes: ConfigChanges): boolean {
  return semanticEqual(changes, NO_CHANGES);
}

function sectionReason(before: IgnitionConfig, after: IgnitionConfig): string | undefined {
  if (!semanticEqual(before.passwd?.groups, after.passwd?.groups))
    return 'ignition Passwd Groups section contains changes';
  if (!semanticEqual(before.kernelArguments, after.kernelArguments)) return 'ignition kargs section contains changes';
  const sections = ['disks', 'filesystems', 'raid', 'luks', 'directories', 'links'] as const;
  const changed = sections.find((name) => {
    const now = after.storage?.[name];
    // All links may be removed, as in upstream.
    return !semanticEqual(before.storage?.[name], now) && !(name === 'links' && (now?.length ?? 0) === 0);
  });
  if (changed !== undefined) return `ignition ${changed} section contains changes`;
  const appended = after.storage?.files?.find(({ append }) => (append?.length ?? 0) > 0);
  return appended === undefined ? undefined : `ignition file ${appended.path} includes append`;
}

/**
 * Reason for changes that require another kernel or system image. Hosts get these from packages of their distribution.
 */
function hostReason(changes: ConfigChanges, to: MachineConfigSpec): string | undefined {
  if (changes.fips) return 'detected change to FIPS flag; refusing to modify FIPS on a running cluster';
  if (changes.kernelType)
    return `spec.kernelType: ${kernelType(to)} needs another kernel; install its package on the host`;
  if (changes.osImageURL && (to.osImageURL ?? '') !== '')
    return 'spec.osImageURL: the host is not based on an image; upgrade its packages instead';
  if (changes.extensions && (to.extensions ?? []).length > 0)
    return 'spec.extensions: the host is not based on an image; install the packages on it';
  return undefined;
}

const kernelType = (spec: MachineConfigSpec | undefined): string =>
  (spec?.kernelType ?? '') === '' ? 'default' : (spec?.kernelType ?? '');

function changedKeys<T>(before: readonly T[], after: readonly T[], keyOf: (item: T) => string): string[] {
  const old = new Map(before.map((item) => [keyOf(item), item]));
  const now = new Map(after.map((item) => [keyOf(item), item]));
  const removed = [...old.keys()].filter((key) => !now.has(key));
  const changed = [...now].flatMap(([key, item]) => (semanticEqual(old.get(key), item) ? [] : [key]));
  return [...removed, ...changed].sort();
}
