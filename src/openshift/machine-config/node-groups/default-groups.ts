/**
 * Node groups of OKD 3.11: ConfigMaps in the namespace `openshift-node`, with a NodeConfig under `node-config.yaml`.
 */
import type { ConfigMap } from '../../../api/generated/core/v1.ts';
import { NODE_GROUPS } from '../../../api/kinds/nodes/nodes/own-labels.ts';

export const { namespace: GROUP_NAMESPACE, key: GROUP_KEY } = NODE_GROUPS;

const ROLE = 'node-role.kubernetes.io/';
const ROLES_OF: ReadonlyMap<string, readonly string[]> = new Map([
  ['node-config-master', ['master']],
  ['node-config-infra', ['infra']],
  ['node-config-compute', ['compute']],
  ['node-config-all-in-one', ['master', 'infra', 'compute']],
  ['node-config-master-infra', ['master', 'infra']],
]);

/** ConfigMaps of the node groups in a new cluster. */
export function defaultGroups(): ConfigMap[] {
  return [...ROLES_OF].map(([name, roles]) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: GROUP_NAMESPACE },
    data: {
      [GROUP_KEY]: [
        'apiVersion: v1',
        'kind: NodeConfig',
        'kubeletArguments:',
        '  node-labels:',
        ...roles.map((role) => `  - ${ROLE}${role}=true`),
        '',
      ].join('\n'),
    },
  }));
}

export const isGroupName = (name: string): boolean => /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name);
