/**
 * Renders the MachineConfigs of a pool into one. Fragments are merged in the order of their names, and fragments with
 * the role `worker` before those of a custom pool. Later fragments take precedence. Source:
 * openshift/machine-config-operator MergeMachineConfigs.
 */
import { canonicalConfig, mergeIgnition } from './merge.ts';
import { describeErrors, emptyConfig, type ParseOptions, parseIgnition, RENDERED_VERSION } from './parse.ts';
import type { IgnitionConfig, MachineConfigSpec } from './types.ts';

export interface Fragment {
  readonly name: string;
  /** Value of the label `machineconfiguration.openshift.io/role`. */
  readonly role: string;
  readonly spec: MachineConfigSpec;
}

/** Spec of a rendered MachineConfig, in which every field is set. */
export interface RenderedSpec {
  readonly config: IgnitionConfig;
  readonly osImageURL: string;
  readonly baseOSExtensionsContainerImage: string;
  readonly kernelArguments: readonly string[];
  readonly kernelType: string;
  readonly fips: boolean;
  readonly extensions: readonly string[];
}

export interface RenderOptions extends Pick<ParseOptions, 'inflate' | 'parsed' | 'sshUser'> {
  /** OS image of the ControllerConfig. A fragment may override it. */
  readonly osImageURL?: string;
  readonly baseOSExtensionsContainerImage?: string;
}

export type Rendering =
  /**
   * `refused`: settings that hosts will reject, with the name of their fragment. They make the hosts Unreconcilable.
   */
  | { readonly spec: RenderedSpec; readonly refused: readonly string[] }
  /** One-line message for the condition RenderDegraded. */
  | { readonly error: string };

const KERNEL_TYPES = ['', 'default', 'realtime', '64k-pages'];

export function renderMachineConfigs(fragments: readonly Fragment[], options: RenderOptions): Rendering {
  const ordered = fragments.toSorted(
    (left, right) => Number(left.role !== 'worker') - Number(right.role !== 'worker') || byName(left.name, right.name),
  );
  const refused: string[] = [];
  let config = emptyConfig();
  for (const { name, spec } of ordered) {
    const kernelType = spec.kernelType ?? '';
    if (!KERNEL_TYPES.includes(kernelType)) return failed(name, `kernelType=${kernelType} is invalid`);
    const parsed = parseIgnition(spec.config, options);
    if (parsed.config === undefined) return failed(name, describeErrors(parsed.invalid));
    if (parsed.refused.length > 0) refused.push(`${name}: ${describeErrors(parsed.refused)}`);
    config = mergeIgnition(config, parsed.config);
  }
  const specs = ordered.map(({ spec }) => spec);
  const merged = parseIgnition(finished(config), options);
  if (merged.config === undefined) return failed('merged config', describeErrors(merged.invalid));
  const kernelType = last(specs.map((spec) => spec.kernelType).filter((type) => type !== 'default')) ?? 'default';
  const extensions = specs.flatMap((spec) => spec.extensions ?? []);
  if (kernelType !== 'default' && extensions.includes('kernel-devel'))
    return { error: `installing kernel-devel extension is not supported with kernelType: ${kernelType}` };
  return {
    refused,
    spec: {
      config: merged.config,
      osImageURL: last(specs.map((spec) => spec.osImageURL)) ?? options.osImageURL ?? '',
      baseOSExtensionsContainerImage:
        last(specs.map((spec) => spec.baseOSExtensionsContainerImage)) ?? options.baseOSExtensionsContainerImage ?? '',
      kernelArguments: specs.flatMap((spec) => spec.kernelArguments ?? []),
      kernelType,
      fips: specs.some((spec) => spec.fips === true),
      extensions,
    },
  };
}

/** Sets `overwrite` in all files, because Ignition would otherwise reject files that exist on the host. */
function finished(config: IgnitionConfig): IgnitionConfig {
  const storage = config.storage;
  const files = storage?.files?.map((file) => ({ overwrite: true, ...file }));
  const { kernelArguments } = config;
  const version = kernelArguments === undefined ? RENDERED_VERSION : '3.3.0';
  return canonicalConfig({
    ...config,
    ignition: { ...config.ignition, version },
    ...(files === undefined ? {} : { storage: { ...storage, files } }),
  });
}

const failed = (name: string, why: string): Rendering => ({ error: `${name}: ${why}` });

/** Compares names by their code units, which for ASCII is the order of Go. */
const byName = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0);

const last = (values: readonly (string | undefined)[]): string | undefined =>
  values.findLast((value) => value !== undefined && value !== '');
