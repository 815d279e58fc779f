/** Types and texts of the checks of the pod security standards. Source: k8s.io/pod-security-admission/policy. */
import type { Container, PodSpec } from '../../../api/generated/core/v1.ts';

/** A pod, or the pod template of a workload. */
export interface PodLike {
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: PodSpec;
}

export interface Violation {
  /** Short description without names, for messages about several pods. */
  readonly reason: string;
  /** Names of the violating containers, volumes or fields. */
  readonly detail: string;
}

type CheckPod = (pod: PodLike) => Violation | undefined;

export interface Check {
  readonly id: string;
  /** Check by the Kubernetes minor version from which it applies, ascending. */
  readonly versions: readonly {
    readonly since: number;
    readonly check: CheckPod;
    /** IDs of weaker checks of the baseline level that this check replaces. */
    readonly overrides?: readonly string[];
  }[];
}

/** All containers of the pod: init containers, then containers, then ephemeral containers. */
export function containersOf({ spec }: PodLike): readonly Container[] {
  return [
    ...(spec.initContainers ?? []),
    ...spec.containers,
    ...((spec.ephemeralContainers ?? []) as readonly Container[]),
  ];
}

/** Names of the containers for which `isBad` is true. */
export function containersWhere(pod: PodLike, isBad: (container: Container) => boolean): string[] {
  return containersOf(pod)
    .filter(isBad)
    .map(({ name }) => name);
}

export const plural = (one: string, many: string, count: number): string => (count === 1 ? one : many);

export const quotedList = (values: readonly string[]): string =>
  values.map((value) => JSON.stringify(value)).join(', ');

export const unique = (values: readonly string[]): string[] => [...new Set(values)].sort();

/** Text such as `container "a"` or `containers "a", "b"`. */
export const containersText = (names: readonly string[]): string =>
  `${plural('container', 'containers', names.length)} ${quotedList(names)}`;

/** Text such as `pod`, `container "a"`, or `pod and containers "a", "b"`. */
export function settersText(pod: boolean, containers: readonly string[]): string {
  const setters = [...(pod ? ['pod'] : []), ...(containers.length === 0 ? [] : [containersText(containers)])];
  return setters.join(' and ');
}

/** Reports whether the pod has a user namespace, in which root is an unprivileged user of the host. */
export const hasUserNamespace = ({ spec }: PodLike): boolean => spec.hostUsers === false;

/** Reports whether the pod is for Windows. Checks of Linux-only fields do not apply to such pods. */
export const isWindows = ({ spec }: PodLike): boolean => spec.os?.name === 'windows';
