/**
 * Applies a config from a machine config server as the first config of a host, before the host process starts. The
 * config is on trial like any other: at its first start, the host process restarts units or reboots for kernel
 * arguments, and rolls back if the Node does not become Ready. Source: openshift/machine-config-operator pkg/server,
 * `appendNodeAnnotations`.
 */

import { CodedError } from '../../../base/errors.ts';
import { fileText, type IgnitionConfig, type MachineConfigSpec, parseIgnition } from '../core/ignition/index.ts';
import { CURRENT_CONFIG } from '../kinds/machine-config-types.ts';
import { type AppliedConfig, noteOf } from './host-record.ts';
import { type ChangeParts, planChange } from './plan-change.ts';

/** Files that the server adds to the config of the pool. They are not written to the host. */
const ANNOTATIONS = '/etc/machine-config-daemon/node-annotations.json';
const ENCAPSULATED = '/etc/ignition-machine-config-encapsulated.json';

/**
 * Writes the files of the config in `text`, which is the server's response. Resolves with the name of the rendered
 * config. If it throws a CodedError, which names the field or file, nothing has changed.
 */
export async function applyServedConfig(text: string, parts: ChangeParts): Promise<string> {
  const served = servedConfig(text, parts);
  const present = noteOf(await parts.files.open());
  if (present.applied.name === served.name) return served.name;
  if (present.applied.name !== undefined)
    throw new CodedError(
      'configured',
      `this host already has the configuration ${present.applied.name}; change it with its pool`,
    );
  const plan = await planChange({}, served, {}, parts);
  if (plan.unreconcilable !== undefined)
    throw new CodedError('unreconcilable', `${served.name}: ${plan.unreconcilable}`);
  const trial = { from: {}, bootId: await parts.kernel.bootId(), policies: {}, mayCutOff: true };
  await parts.files.apply(plan.tree, { applied: served, trial });
  return served.name;
}

function servedConfig(text: string, { parse }: ChangeParts): AppliedConfig & { readonly name: string } {
  const document = jsonIn(text, 'machine config server');
  const { config, invalid } = parseIgnition(document, { ...parse, path: 'config' });
  const [error] = invalid;
  if (config === undefined) throw new CodedError('bad-config', `${error?.field}: ${error?.message}`);
  const files = config.storage?.files ?? [];
  const textOf = (path: string): string => {
    const file = files.find((each) => each.path === path);
    if (file === undefined)
      throw new CodedError('bad-config', `machine config server: the response has no file ${path}`);
    return fileText(file, parse.inflate);
  };
  const name = fieldOf(jsonIn(textOf(ANNOTATIONS), ANNOTATIONS), CURRENT_CONFIG);
  if (typeof name !== 'string' || name === '')
    throw new CodedError('bad-config', `${ANNOTATIONS}: ${CURRENT_CONFIG}: must be the name of a rendered config`);
  const spec = fieldOf(jsonIn(textOf(ENCAPSULATED), ENCAPSULATED), 'spec');
  const rest = typeof spec === 'object' && spec !== null ? (spec as MachineConfigSpec) : {};
  return { name, spec: { ...rest, config: withoutAdded(config) } };
}

function withoutAdded({ kernelArguments: _, ...config }: IgnitionConfig): IgnitionConfig {
  const files = config.storage?.files?.filter(({ path }) => path !== ANNOTATIONS && path !== ENCAPSULATED) ?? [];
  return { ...config, storage: { ...config.storage, files } };
}

function jsonIn(text: string, what: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new CodedError('bad-config', `${what}: is not JSON`);
  }
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
