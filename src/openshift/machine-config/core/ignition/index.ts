/** Ignition configs of MachineConfigs: parsing, merging, comparison, and the actions that a change requires. */
export { fileText } from './contents.ts';
export { mayCutOff } from './cut-off.ts';
export { type ConfigChanges, type ConfigDifference, isUnchanged, machineConfigDifference } from './difference.ts';
export {
  clusterPolicies,
  type Disruption,
  type DisruptionPolicies,
  disruptionOf,
  type Step,
} from './disruption.ts';
export {
  kernelArgumentsError,
  missingKernelArguments,
  splitKernelArguments,
  withKernelArguments,
} from './kernel-arguments.ts';
export { type ParsedIgnition, type ParseOptions, parseIgnition } from './parse.ts';
export type { Entry, Tree } from './port.ts';
export {
  type Fragment,
  type RenderedSpec,
  type Rendering,
  type RenderOptions,
  renderMachineConfigs,
} from './render.ts';
export { treeOf } from './tree.ts';
export type { IgnitionConfig, IgnitionFile, IgnitionUnit, Inflate, MachineConfigSpec } from './types.ts';
