/**
 * What a check of the pod security standards is, and the words they share. Source:
 * k8s.io/pod-security-admission/policy.
 */
import type { Container, PodSpec } from 'kubernetes-types/core/v1';

/** A pod, or what a workload makes pods from. */
export interface PodLike {
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: PodSpec;
}

export interface Violation {
  /** In few words, as it is said of many pods. */
  readonly reason: string;
  /** With the names of what violates. */
  readonly detail: string;
}

type CheckPod = (pod: PodLike) => Violation | undefined;

export interface Check {
  readonly id: string;
  /** What is checked from which minor version of Kubernetes 1 on; ascending. */
  readonly versions: readonly {
    readonly since: number;
    readonly check: CheckPod;
    /** Checks of the level below that say less of the same. */
    readonly overrides?: readonly string[];
  }[];
}

/** Init containers first, then the others, debuggers last. */
export function containersOf({ spec }: PodLike): readonly Container[] {
  return [
    ...(spec.initContainers ?? []),
    ...spec.containers,
    ...((spec.ephemeralContainers ?? []) as readonly Container[]),
  ];
}

/** Names of the containers for which `isBad` holds. */
export function containersWhere(pod: PodLike, isBad: (container: Container) => boolean): string[] {
  return containersOf(pod)
    .filter(isBad)
    .map(({ name }) => name);
}

export const plural = (one: string, many: string, count: number): string => (count === 1 ? one : many);

/** `"a", "b"`. */
export const quoted = (values: readonly string[]): string => values.map((value) => JSON.stringify(value)).join(', ');

export const unique = (values: readonly string[]): string[] => [...new Set(values)].sort();

/** `container "a"`, `containers "a", "b"`. */
export const containersText = (names: readonly string[]): string =>
  `${plural('container', 'containers', names.length)} ${quoted(names)}`;

/** `pod`, `container "a"`, or `pod and containers "a", "b"`: those that set something themselves. */
export function settersText(pod: boolean, containers: readonly string[]): string {
  const setters = [...(pod ? ['pod'] : []), ...(containers.length === 0 ? [] : [containersText(containers)])];
  return setters.join(' and ');
}

/** In a user namespace root is an unprivileged user of the host. */
export const hasUserNamespace = ({ spec }: PodLike): boolean => spec.hostUsers === false;

/** Nothing of what only Linux knows can be asked of it. */
export const isWindows = ({ spec }: PodLike): boolean => spec.os?.name === 'windows';
