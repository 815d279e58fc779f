/** Plans the change of a host from one config to another. Reads facts from the host, but changes nothing. */
import { CodedError } from '../../../base/errors.ts';
import {
  clusterPolicies,
  type Disruption,
  type DisruptionPolicies,
  disruptionOf,
  kernelArgumentsError,
  type MachineConfigSpec,
  machineConfigDifference,
  mayCutOff,
  missingKernelArguments,
  type ParseOptions,
  splitKernelArguments,
  type Tree,
  treeOf,
  withKernelArguments,
} from '../core/ignition/index.ts';
import type { AppliedConfig } from './host-record.ts';
import type { HostFiles, HostKernel } from './port.ts';

export interface ChangeParts {
  readonly files: HostFiles;
  readonly kernel: HostKernel;
  readonly parse: ParseOptions;
}

export type PlannedChange =
  | { readonly unreconcilable: string }
  | {
      readonly tree: Tree;
      readonly disruption: Disruption;
      readonly mayCutOff: boolean;
      readonly unreconcilable?: undefined;
    };

/**
 * Plans the change: the files, the steps, and the reason if it is impossible. Throws CodedErrors if the host lacks an
 * account or a unit.
 */
export async function planChange(
  from: AppliedConfig,
  to: AppliedConfig,
  policies: DisruptionPolicies,
  parts: ChangeParts,
): Promise<PlannedChange> {
  const spec = to.spec ?? {};
  const { changes, to: config, unreconcilable } = machineConfigDifference(from.spec, spec, parts.parse);
  if (unreconcilable !== undefined || config === undefined)
    return { unreconcilable: unreconcilable ?? 'invalid ignition V3 config found' };
  const kernel = await kernelTree(from, spec, parts.kernel);
  if (typeof kernel === 'string') return { unreconcilable: kernel };
  const units = (config.systemd?.units ?? []).map(({ name }) => name);
  const facts = await parts.files.facts(units);
  const tree = new Map([...treeOf(config, { inflate: parts.parse.inflate, ...facts }), ...kernel]);
  const disruption = disruptionOf(changes, config, clusterPolicies(policies));
  return { tree, disruption, mayCutOff: mayCutOff(changes, disruption) };
}

/** File of the boot loader with the new kernel arguments, or the reason why this host cannot change them. */
async function kernelTree(from: AppliedConfig, to: MachineConfigSpec, kernel: HostKernel): Promise<Tree | string> {
  const wanted = splitKernelArguments(to.kernelArguments ?? []);
  const present = from.spec?.kernelArguments ?? [];
  if (wanted.length === 0 && present.length === 0) return new Map();
  const loader = await kernel.loader();
  if (!('kind' in loader)) {
    if (wanted.length === 0) return new Map();
    const why = 'the boot loader of this host is not known';
    return `spec.kernelArguments: ${why}; edit ${loader.file} on the host: ${wanted.join(' ')}`;
  }
  const { kind, file, mode, uid, gid } = loader;
  // The separate file for GRUB is omitted if no arguments remain, so it is removed.
  if (kind === 'grub' && wanted.length === 0) return new Map();
  const text = withKernelArguments(kind, loader.text, present, wanted);
  const error = wanted.length === 0 ? undefined : kernelArgumentsError(kind, text, wanted);
  if (error !== undefined) return `spec.kernelArguments: ${file}: ${error}`;
  const bytes = new TextEncoder().encode(text);
  // The files of other boot loaders are shared: kernel packages also write them, so restoring an original could
  // reference a kernel that has been removed.
  return new Map([[file, { kind: 'file', bytes, mode, user: uid, group: gid, shared: kind !== 'grub' }]]);
}

/** Throws CodedError 'kernel-arguments' if the running kernel lacks an argument of the config. */
export async function checkRunningKernel(spec: MachineConfigSpec | undefined, kernel: HostKernel): Promise<void> {
  const wanted = splitKernelArguments(spec?.kernelArguments ?? []);
  if (wanted.length === 0) return;
  const missing = missingKernelArguments(await kernel.arguments(), wanted);
  if (missing.length > 0)
    throw new CodedError('kernel-arguments', `kernel arguments not in effect after the reboot: ${missing.join(' ')}`);
}
