/** Ignition configs of MachineConfigs: parsing, merging, comparing, and what a change needs. */
export { type ConfigChanges, type ConfigDifference, isUnchanged, machineConfigDifference } from './difference.ts';
export { type ParsedIgnition, type ParseOptions, parseIgnition } from './parse.ts';
export {
  type Fragment,
  type RenderedSpec,
  type Rendering,
  type RenderOptions,
  renderMachineConfigs,
} from './render.ts';
export type { IgnitionConfig, IgnitionFile, IgnitionUnit, Inflate, MachineConfigSpec } from './types.ts';
