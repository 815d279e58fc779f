/** Explains why pods of a workload do not run. Each cause is reported once. */
import type { Event, Node, Pod } from '../../../api/generated/core/v1.ts';
import { explainPod, type Finding } from '../pods/explain.ts';

export interface PodFinding {
  readonly finding: Finding;
  /** Name of one pod with this cause. */
  readonly pod: string;
  /** Number of pods with the same cause. */
  readonly pods: number;
}

const MAX_FINDINGS = 3;

/** Errors and warnings of the pods, errors first. Pods that are being deleted are ignored. */
export function workloadFindings(
  pods: readonly Pod[],
  facts: { readonly events: readonly Event[]; readonly nodes: readonly Node[]; readonly nowMs: number },
): readonly PodFinding[] {
  const found = new Map<string, PodFinding>();
  for (const pod of pods) {
    if (pod.metadata?.deletionTimestamp !== undefined) continue;
    const events = facts.events.filter(({ involvedObject }) => involvedObject?.uid === pod.metadata?.uid);
    const [finding] = explainPod({ ...facts, pod, events });
    if (finding === undefined || finding.severity === 'info') continue;
    const first = found.get(finding.title);
    found.set(
      finding.title,
      first === undefined ? { finding, pod: pod.metadata?.name ?? '', pods: 1 } : { ...first, pods: first.pods + 1 },
    );
  }
  const rank = ({ finding }: PodFinding): number => Number(finding.severity !== 'error');
  return [...found.values()].sort((a, b) => rank(a) - rank(b)).slice(0, MAX_FINDINGS);
}
