/**
 * The scheduler's picture of the cluster: nodes and the pods on them, including those whose binding is still under way
 * (assumed) and those a preemption has made room for (nominated).
 */
import type { Node, Pod } from 'kubernetes-types/core/v1';
import type { DeviceLister } from './devices.ts';
import { NodeInfo } from './node-info.ts';
import { type PodInfo, podInfoOf } from './pod-info.ts';
import type { VolumeLister } from './pod-volumes.ts';

/** What filters and scorers may look at. */
export interface ClusterView {
  readonly nodes: readonly NodeInfo[];
  namespaceLabels(namespace: string): Readonly<Record<string, string>>;
  readonly volumes: VolumeLister | undefined;
  /** Undefined: the server has no claims on devices. */
  readonly devices?: DeviceLister | undefined;
  /** The selector of the services and controllers a pod belongs to, for spreading by default; undefined: none. */
  peersOf?(pod: Pod): ((other: PodInfo) => boolean) | undefined;
}

export class Cluster {
  readonly #nodes = new Map<string, NodeInfo>();
  /** Pods whose node is not known (yet): they count as soon as it appears. */
  readonly #homeless = new Map<string, Map<string, PodInfo>>();
  /** Node name by pod UID, for bound and assumed pods. */
  readonly #nodeOf = new Map<string, string>();
  readonly #assumed = new Set<string>();
  readonly #nominated = new Map<string, { readonly node: string; readonly pod: PodInfo }>();
  #list: NodeInfo[] | undefined;

  get nodes(): readonly NodeInfo[] {
    this.#list ??= [...this.#nodes.values()];
    return this.#list;
  }

  node(name: string): NodeInfo | undefined {
    return this.#nodes.get(name);
  }

  setNode(node: Node): void {
    const name = node.metadata?.name ?? '';
    const known = this.#nodes.get(name);
    const info = known === undefined ? new NodeInfo(node) : known.withNode(node);
    for (const pod of this.#homeless.get(name)?.values() ?? []) info.add(pod);
    this.#homeless.delete(name);
    this.#nodes.set(name, info);
    this.#list = undefined;
  }

  removeNode(name: string): void {
    const known = this.#nodes.get(name);
    if (known === undefined) return;
    this.#nodes.delete(name);
    this.#list = undefined;
    if (known.pods.size > 0) this.#homeless.set(name, new Map(known.pods));
  }

  /** A bound pod as the API shows it; confirms an assumption. */
  setPod(pod: Pod): void {
    const info = podInfoOf(pod);
    this.#assumed.delete(info.uid);
    this.#place(info, pod.spec?.nodeName ?? '');
    this.#nominated.delete(info.uid);
  }

  removePod(uid: string): void {
    this.#assumed.delete(uid);
    this.#nominated.delete(uid);
    this.#displace(uid);
  }

  /** Counts a pod on a node before the API has confirmed the binding. */
  assume(pod: PodInfo, node: string): void {
    this.#assumed.add(pod.uid);
    this.#place(pod, node);
  }

  /** The binding failed. Does nothing once the API has shown the pod as bound. */
  forget(uid: string): void {
    if (!this.#assumed.delete(uid)) return;
    this.#displace(uid);
  }

  isAssumed(uid: string): boolean {
    return this.#assumed.has(uid);
  }

  nominate(pod: PodInfo, node: string): void {
    this.#nominated.set(pod.uid, { node, pod });
  }

  clearNomination(uid: string): void {
    this.#nominated.delete(uid);
  }

  nominatedNode(uid: string): string | undefined {
    return this.#nominated.get(uid)?.node;
  }

  nominatedOn(node: string): PodInfo[] {
    const pods: PodInfo[] = [];
    for (const each of this.#nominated.values()) if (each.node === node) pods.push(each.pod);
    return pods;
  }

  #place(pod: PodInfo, node: string): void {
    this.#displace(pod.uid);
    this.#nodeOf.set(pod.uid, node);
    const info = this.#nodes.get(node);
    if (info !== undefined) {
      info.add(pod);
      return;
    }
    const waiting = this.#homeless.get(node);
    if (waiting === undefined) this.#homeless.set(node, new Map([[pod.uid, pod]]));
    else waiting.set(pod.uid, pod);
  }

  #displace(uid: string): void {
    const node = this.#nodeOf.get(uid);
    if (node === undefined) return;
    this.#nodeOf.delete(uid);
    this.#nodes.get(node)?.remove(uid);
    const waiting = this.#homeless.get(node);
    waiting?.delete(uid);
    if (waiting?.size === 0) this.#homeless.delete(node);
  }
}
