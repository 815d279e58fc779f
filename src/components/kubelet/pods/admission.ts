/**
 * The kubelet's last word on what a scheduler, or somebody who set `nodeName`, decided. Source: pkg/kubelet/lifecycle/predicate.go,
 * pkg/security/apparmor/validate.go; texts of the reasons as upstream's, which other programs look for.
 */
import type { Node, Pod } from 'kubernetes-types/core/v1';
import { type Quantity, quantityMilliValue, quantityValue } from '../../../base/quantity.ts';
import { matchesNode } from '../../../core/scheduling/node-affinity.ts';
import { podInfoOf, portsConflict } from '../../../core/scheduling/pod-info.ts';
import { podRequests } from '../../../core/scheduling/resources.ts';
import { untoleratedTaint } from '../../../core/scheduling/tolerations.ts';

/** Becomes the pod's `status.reason` and event; the status says `Pod was rejected: ` before the message. */
export interface Rejection {
  readonly reason: string;
  readonly message: string;
}

export interface AdmissionInput {
  readonly pod: Pod;
  /** Pods that hold resources of the node, without this one. */
  readonly others: readonly Pod[];
  /** Undefined while the node has not been seen at the API: its labels and taints are not known then. */
  readonly node: Node | undefined;
  readonly allocatable: Readonly<Record<string, Quantity>>;
  readonly maxPods: number;
  /** Why the node's pressure keeps the pod from starting; undefined: it does not. */
  readonly underPressure: Rejection | undefined;
}

const COMPUTE = ['cpu', 'memory', 'ephemeral-storage'] as const;

/** Undefined: admitted. */
export function admissionRejection(input: AdmissionInput): Rejection | undefined {
  return (
    input.underPressure ?? appArmor(input.pod) ?? resources(input) ?? placement(input) ?? ports(input) ?? taints(input)
  );
}

function resources({ pod, others, allocatable, maxPods }: AdmissionInput): Rejection | undefined {
  if (others.length + 1 > maxPods) return insufficient('pods', 1, others.length, maxPods);
  return resourceShortage(pod, others, allocatable);
}

/** Which of the node's resources is too scarce for the pod beside the others; undefined: there is room. */
export function resourceShortage(
  pod: Pod,
  others: readonly Pod[],
  allocatable: Readonly<Record<string, Quantity>>,
): Rejection | undefined {
  const wanted = podRequests(pod);
  const asking = COMPUTE.filter((name) => (wanted.get(name) ?? 0) > 0);
  if (asking.length === 0) return undefined;
  const held = others.map(podRequests);
  for (const name of asking) {
    const requested = wanted.get(name) ?? 0;
    const used = held.reduce((sum, amounts) => sum + (amounts.get(name) ?? 0), 0);
    const quantity = allocatable[name];
    const capacity =
      quantity === undefined ? 0 : name === 'cpu' ? quantityMilliValue(quantity) : quantityValue(quantity);
    if (requested > capacity - used) return insufficient(name, requested, used, capacity);
  }
  return undefined;
}

const insufficient = (name: string, requested: number, used: number, capacity: number): Rejection => ({
  reason: `OutOf${name}`,
  message: `Node didn't have enough resource: ${name}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
});

const failed = (predicate: string, why: string): Rejection => ({
  reason: predicate,
  message: `Predicate ${predicate} failed: ${why}`,
});

function placement({ pod, node }: AdmissionInput): Rejection | undefined {
  if (node === undefined || matchesNode(pod, node)) return undefined;
  return failed('NodeAffinity', "node(s) didn't match Pod's node affinity/selector");
}

function ports({ pod, others }: AdmissionInput): Rejection | undefined {
  const wanted = podInfoOf(pod).hostPorts;
  if (wanted.length === 0) return undefined;
  const taken = others.flatMap((other) => podInfoOf(other).hostPorts);
  const free = wanted.every((port) => !taken.some((each) => portsConflict(each, port)));
  return free ? undefined : failed('NodePorts', "node(s) didn't have free ports for the requested pod ports");
}

function taints({ pod, node }: AdmissionInput): Rejection | undefined {
  if (untoleratedTaint(node?.spec?.taints, pod.spec?.tolerations, ['NoExecute']) === undefined) return undefined;
  return failed('TaintToleration', "node(s) had taints that the pod didn't tolerate");
}

/** This node's runtime does not load AppArmor profiles: a pod that insists on one must not run without. */
function appArmor(pod: Pod): Rejection | undefined {
  const profiles = [
    pod.spec?.securityContext,
    ...[...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])].map((each) => each.securityContext),
  ].map((context) => context?.appArmorProfile?.type);
  if (profiles.every((type) => type === undefined || type === 'Unconfined')) return undefined;
  return { reason: 'AppArmor', message: 'Cannot enforce AppArmor: AppArmor is not enabled on the host' };
}
