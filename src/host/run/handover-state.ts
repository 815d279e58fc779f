/** Determines which masters can run the cluster without the temporary control plane. */
import type { Node } from '../../api/generated/core/v1.ts';
import type { MemberReport } from '../store/administration.ts';

export interface HandoverFacts {
  /** Name of the temporary master. */
  readonly own: string;
  readonly nodes: readonly Node[];
  /** Addresses of the Service `default/kubernetes`. */
  readonly apiAddresses: readonly string[];
  /** Members of the store; undefined if the cluster uses an external store. */
  readonly members: readonly Pick<MemberReport, 'name' | 'role' | 'state' | 'lag'>[] | undefined;
}

/** Maximum lag of a learner in entries. It becomes a voter when the temporary master leaves. */
const MAX_LAG = 500;

const isFull = ({ lag }: Pick<MemberReport, 'lag'>): boolean => lag !== undefined && lag <= MAX_LAG;

const MASTER_LABEL = 'node-role.kubernetes.io/master';

/**
 * Sorted names of the masters that can continue without the temporary master. Such a master is Ready, serves the API,
 * and has a healthy store member with almost the whole log.
 */
export function readyMasters({ own, nodes, apiAddresses, members }: HandoverFacts): string[] {
  return nodes
    .filter((node) => {
      const { name, labels } = node.metadata ?? {};
      const isReady =
        node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
      const serves = (node.status?.addresses ?? []).some(({ address }) => apiAddresses.includes(address));
      const votes =
        members === undefined ||
        members.some((each) => each.name === name && each.state === 'ok' && (each.role !== 'learner' || isFull(each)));
      return name !== own && labels?.[MASTER_LABEL] !== undefined && isReady && serves && votes;
    })
    .map(({ metadata }) => metadata?.name ?? '')
    .sort();
}
