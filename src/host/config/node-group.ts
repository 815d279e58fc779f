/** The node group of a host: name, last known configuration, and merge into the host's own configuration. */
import { stringify } from 'yaml';
import { mayKubeletLabel } from '../../api/kinds/nodes/nodes/own-labels.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { kubeletFields } from '../../openshift/machine-config/core/pools/kubelet-fields.ts';
import { isGroupName } from '../../openshift/machine-config/node-groups/index.ts';
import { readIfPresent } from '../../wire/strict-yaml.ts';
import { nodeConfigOf } from './generate.ts';
import { type NodeConfig, type PartialNodeConfig, pairArgument, parseNodeConfig } from './node-config.ts';
import type { Settings } from './settings.ts';

const VARIABLE = 'BOOTSTRAP_CONFIG_NAME';

/** Initial content of `/etc/sysconfig/atomic-openshift-node`. */
export function sysconfigOf({ roles }: Settings): string {
  const group = roles.has('master') ? 'node-config-all-in-one' : 'node-config-compute';
  return `# The ConfigMap in namespace openshift-node with the configuration of this host's kubelet.\n${VARIABLE}=${group}\n`;
}

/**
 * Name of the node group in the sysconfig file; undefined if there is none. Throws CodedError 'bad-config' for a name
 * that is invalid for a ConfigMap.
 */
export async function groupNameOf(file: string): Promise<string | undefined> {
  const text = (await readIfPresent(file)) ?? '';
  const line = text
    .split('\n')
    .findLast((each) => each.trim().startsWith(`${VARIABLE}=`))
    ?.trim()
    .slice(VARIABLE.length + 1);
  const name = line?.replace(/^(["'])(.*)\1$/, '$2') ?? '';
  if (name === '') return undefined;
  if (!isGroupName(name))
    throw new CodedError('bad-config', `${file}: ${VARIABLE}: "${name}" is not the name of a ConfigMap`);
  return name;
}

/** Fields of a group's NodeConfig that are applied. The host's own configuration determines the other fields. */
const GROUP_FIELDS = ['apiVersion', 'kind', 'kubeletArguments'];

/**
 * The host's own configuration merged with its group's. If there is no group or its configuration is invalid, the
 * host's own configuration is returned.
 */
export async function groupedNodeConfig(settings: Settings, cgroupDriver: string, log: Log): Promise<NodeConfig> {
  const own = nodeConfigOf(settings, cgroupDriver);
  const file = settings.paths.nodeGroup;
  const text = await readIfPresent(file);
  if (text === undefined) return own;
  try {
    return withGroup(own, parseNodeConfig(text, file).config, file);
  } catch (error) {
    log.warn('node group invalid; using the configuration of the host', { error: messageOf(error) });
    return own;
  }
}

/**
 * Merges a group's configuration into the host's. Arguments of the group replace those of the host, but labels are
 * added. Labels that only masters may set are omitted.
 */
export function withGroup(own: NodeConfig, group: PartialNodeConfig, origin: string): NodeConfig {
  const labels = Object.entries({ ...labelsOf(own, origin), ...labelsOf(group, origin) })
    .filter(([label]) => mayKubeletLabel(label))
    .map(([label, value]) => `${label}=${value}`);
  const { 'node-labels': _, ...rest } = { ...own.kubeletArguments, ...group.kubeletArguments };
  return { ...own, kubeletArguments: { ...rest, ...(labels.length === 0 ? {} : { 'node-labels': labels }) } };
}

/** The kubelet's arguments in a group's text, without its labels. Throws CodedError 'bad-config'. */
export function groupArguments(text: string): Readonly<Record<string, readonly string[]>> {
  const { 'node-labels': _, ...rest } = parseNodeConfig(text, 'node-config.yaml').config.kubeletArguments ?? {};
  return Object.fromEntries(
    Object.entries(rest).flatMap(([name, values]) => (values === undefined ? [] : [[name, values]])),
  );
}

/**
 * The part of a group's text that the host itself applies. `byPools`: omits arguments that a KubeletConfig of the
 * host's pool sets.
 */
export function ownGroupText(text: string, byPools: boolean): string {
  if (!byPools) return text;
  const labels = parseNodeConfig(text, 'node-config.yaml').config.kubeletArguments?.['node-labels'];
  const { rest } = kubeletFields(groupArguments(text));
  const kubeletArguments = { ...rest, ...(labels === undefined ? {} : { 'node-labels': labels }) };
  return stringify({ apiVersion: 'v1', kind: 'NodeConfig', kubeletArguments }, { lineWidth: 0 });
}

/** Fields of a group's text that have no effect on a host. Throws CodedError 'bad-config'. */
export function ignoredFields(text: string, origin: string): readonly string[] {
  const { config, unknown } = parseNodeConfig(text, origin);
  return [...unknown, ...Object.keys(config).filter((field) => !GROUP_FIELDS.includes(field))];
}

/** All labels of a group's text. Throws CodedError 'bad-config'. */
export const groupLabels = (text: string): Readonly<Record<string, string>> =>
  labelsOf(parseNodeConfig(text, 'node-config.yaml').config, 'node-config.yaml');

const labelsOf = ({ kubeletArguments }: PartialNodeConfig, origin: string): Readonly<Record<string, string>> =>
  pairArgument(origin, 'node-labels', kubeletArguments?.['node-labels']);
