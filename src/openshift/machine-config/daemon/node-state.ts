/**
 * Writes the state of the daemon to annotations of the Node. Source: openshift/machine-config-operator
 * pkg/daemon/writer.go.
 */
import type { Node } from '../../../api/generated/core/v1.ts';
import { resources } from '../../../api/resources.ts';
import type { ApiClient } from '../../../client/types.ts';
import {
  CONFIG_REASON,
  CONFIG_STATE,
  CURRENT_CONFIG,
  DESIRED_DRAIN,
  type MachineConfigState,
} from '../kinds/machine-config-types.ts';

/** Maximum length of a reason, because all annotations of an object share one size limit. */
const MAX_REASON = 2_000;

export const annotationOf = (node: Node, name: string): string => node.metadata?.annotations?.[name] ?? '';

export const cutReason = (reason: string): string => reason.slice(0, MAX_REASON);

export interface NodeState {
  readonly state: MachineConfigState;
  readonly reason?: string;
  /** Name of the config on the host. If undefined, the annotation is left unchanged. */
  readonly currentConfig?: string | undefined;
}

/** Writes the annotations that have changed. Throws ApiErrors. */
export async function setNodeState(client: ApiClient, node: Node, wanted: NodeState): Promise<void> {
  const annotations: Record<string, string> = {
    [CONFIG_STATE]: wanted.state,
    [CONFIG_REASON]: cutReason(wanted.reason ?? ''),
    ...(wanted.currentConfig === undefined ? {} : { [CURRENT_CONFIG]: wanted.currentConfig }),
  };
  await annotate(client, node, annotations);
}

export const setDesiredDrain = (client: ApiClient, node: Node, value: string): Promise<void> =>
  annotate(client, node, { [DESIRED_DRAIN]: value });

async function annotate(client: ApiClient, node: Node, annotations: Readonly<Record<string, string>>): Promise<void> {
  const changed = Object.entries(annotations).filter(([name, value]) => annotationOf(node, name) !== value);
  if (changed.length === 0) return;
  await client
    .resource(resources.nodes)
    .patch(node.metadata?.name ?? '', undefined, 'merge', { metadata: { annotations: Object.fromEntries(changed) } });
}
