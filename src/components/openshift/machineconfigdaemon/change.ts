/** Plans the change of a host from one config to another: pure but for facts of the host. */
import { CodedError } from '../../../base/errors.ts';
import {
  clusterPolicies,
  type Disruption,
  type DisruptionPolicies,
  disruptionOf,
  type MachineConfigSpec,
  machineConfigDifference,
  mayCutOff,
  type ParseOptions,
  splitKernelArguments,
  type Tree,
  treeOf,
  withKernelArguments,
} from '../../../core/ignition/index.ts';
import type { AppliedConfig } from './note.ts';
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

/** Throws CodedErrors where the host lacks an account or a unit. */
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

/** The boot loader's file; a reason where this host cannot change it. */
async function kernelTree(from: AppliedConfig, to: MachineConfigSpec, kernel: HostKernel): Promise<Tree | string> {
  const wanted = splitKernelArguments(to.kernelArguments ?? []);
  if (wanted.length === 0) return new Map();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  const bad = wanted.find((argument) => /[\u0000-\u001f\u007f]/.test(argument));
  if (bad !== undefined) return `spec.kernelArguments: ${JSON.stringify(bad)} has a control character`;
  const loader = await kernel.loader();
  if (!('kind' in loader)) {
    const why = 'the boot loader of this host is not known';
    return `spec.kernelArguments: ${why}; edit ${loader.file} on the host: ${wanted.join(' ')}`;
  }
  const text = withKernelArguments(loader.kind, loader.text, from.spec?.kernelArguments ?? [], wanted);
  const { mode, uid, gid } = loader;
  const bytes = new TextEncoder().encode(text);
  return new Map([[loader.file, { kind: 'file', bytes, mode, user: uid, group: gid }]]);
}

/** Throws CodedError 'kernel-arguments' when the running kernel lacks one of the config's. */
export async function checkRunningKernel(spec: MachineConfigSpec | undefined, kernel: HostKernel): Promise<void> {
  const wanted = splitKernelArguments(spec?.kernelArguments ?? []);
  if (wanted.length === 0) return;
  const running = new Set(splitKernelArguments([await kernel.arguments()]));
  const missing = wanted.filter((argument) => !running.has(argument));
  if (missing.length > 0)
    throw new CodedError('kernel-arguments', `kernel arguments not in effect after the reboot: ${missing.join(' ')}`);
}
