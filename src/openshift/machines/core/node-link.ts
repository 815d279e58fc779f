/**
 * Computes the labels, taints and annotations that a Node gets from its machine. Source: openshift/machine-api-operator
 * pkg/controller/nodelink.
 */
import type { Node, Taint } from '../../../api/generated/core/v1.ts';
import { type BareMetalHost, MACHINE_ANNOTATION, type Machine } from '../kinds/machine-types.ts';

const POOL_PREFIX = 'node-role.kubernetes.io/';

/**
 * Merge patch for the Node; undefined if the Node is up to date. As in upstream, values that were changed on the Node
 * are reset to those of the machine.
 */
export function nodePatch(node: Node, machine: Machine, host: BareMetalHost | undefined): object | undefined {
  const { name, namespace } = machine.metadata ?? {};
  const pool = machine.spec?.providerSpec?.value?.pool;
  const labels = differing(node.metadata?.labels, {
    ...machine.spec?.metadata?.labels,
    ...(pool === undefined ? {} : { [`${POOL_PREFIX}${pool}`]: '' }),
  });
  const annotations = differing(node.metadata?.annotations, {
    ...machine.spec?.metadata?.annotations,
    [MACHINE_ANNOTATION]: `${namespace}/${name}`,
  });
  const taints = missingTaints(node.spec?.taints ?? [], machine.spec?.taints ?? []);
  const { namespace: at, name: hostName, uid } = host?.metadata ?? {};
  const providerID =
    host === undefined || (node.spec?.providerID ?? '') !== ''
      ? undefined
      : `baremetalhost:///${at}/${hostName}/${uid}`;
  if (labels === undefined && annotations === undefined && taints === undefined && providerID === undefined)
    return undefined;
  return {
    metadata: {
      // A merge patch replaces the whole list of taints, so the patch must fail if the Node has changed since.
      resourceVersion: node.metadata?.resourceVersion,
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec: {
      ...(taints === undefined ? {} : { taints: [...(node.spec?.taints ?? []), ...taints] }),
      ...(providerID === undefined ? {} : { providerID }),
    },
  };
}

function differing(
  present: Readonly<Record<string, string>> | undefined,
  wanted: Readonly<Record<string, string>>,
): Record<string, string> | undefined {
  const entries = Object.entries(wanted).filter(([key, value]) => present?.[key] !== value);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function missingTaints(present: readonly Taint[], wanted: readonly Taint[]): Taint[] | undefined {
  const missing = wanted.filter(
    ({ key, effect }) => !present.some((each) => each.key === key && each.effect === effect),
  );
  return missing.length === 0 ? undefined : missing;
}
