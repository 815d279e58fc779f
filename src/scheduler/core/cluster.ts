/**
 * The scheduler's view of the cluster: nodes and their pods. It includes pods that are being bound (assumed), and pods
 * for which preemption has made room on a node (nominated).
 */

import type { Node, Pod } from '../../api/generated/core/v1.ts';
import { sameAmounts } from '../../api/podspec/scheduling/node-resources.ts';
import { type PodInfo, podInfoOf } from '../../api/podspec/scheduling/pod-info.ts';
import { type NodeName, toNodeName, toUid, type Uid } from '../../base/brand.ts';
import type { LabelSelector } from '../../base/selector.ts';
import type { DeviceLister } from './devices/device-lister.ts';
import { NodeInfo } from './node-info.ts';
import { IncrementalPodCounts, type PodCounts } from './pod-counts.ts';
import type { VolumeLister } from './volumes/pod-volumes.ts';

/** Read-only view for filters and scorers. */
export interface ClusterView {
  readonly nodes: readonly NodeInfo[];
  readonly counts: PodCounts;
  /** Distinct values that nodes have for a label. */
  domains(topologyKey: string): ReadonlySet<string>;
  /** Number of nodes with an image. */
  imageHolders(image: string): number;
  namespaceLabels(namespace: string): Readonly<Record<string, string>>;
  readonly volumes: VolumeLister | undefined;
  /** Undefined if the server has no resource claims. */
  readonly devices?: DeviceLister | undefined;
  /** Selectors of the services and controllers of a pod, for default spreading; empty if there are none. */
  peersOf?(pod: Pod): readonly LabelSelector[];
}

/** Parts of a view that do not come from the cluster state. */
export type ViewSupport = Omit<ClusterView, 'nodes' | 'counts' | 'domains' | 'imageHolders'>;

const NO_NODE = toNodeName('');
const ZONE = 'topology.kubernetes.io/zone';

export class Cluster {
  readonly #nodes = new Map<NodeName, NodeInfo>();
  readonly #counts = new IncrementalPodCounts(this.#nodes);
  readonly #imageHolders = new Map<string, number>();
  /** Pods whose node is unknown, by name of the node. They are counted as soon as the node appears. */
  readonly #homeless = new Map<NodeName, Map<Uid, PodInfo>>();
  /** Nodes of bound and assumed pods. */
  readonly #nodeOf = new Map<Uid, NodeName>();
  readonly #assumed = new Set<Uid>();
  readonly #nominated = new Map<Uid, NodeName>();
  readonly #nominatedOn = new Map<NodeName, Map<Uid, PodInfo>>();
  readonly #domains = new Map<string, Set<string>>();
  #list: NodeInfo[] | undefined;
  #cursor = 0;

  get nodes(): readonly NodeInfo[] {
    this.#list ??= alternatingZones([...this.#nodes.values()]);
    return this.#list;
  }

  view(support: ViewSupport): ClusterView {
    return {
      ...support,
      nodes: this.nodes,
      counts: this.#counts,
      domains: (topologyKey) => this.#domainsOf(topologyKey),
      imageHolders: (image) => this.#imageHolders.get(image) ?? 0,
    };
  }

  /**
   * Index of the node at which the search for feasible nodes starts. The search for the next pod continues after this
   * search.
   */
  get cursor(): number {
    return this.#cursor;
  }

  moveCursor(by: number): void {
    this.#cursor = (this.#cursor + by) % Math.max(1, this.#nodes.size);
  }

  namespaceChanged(): void {
    this.#counts.forgetNamespaces();
  }

  node(name: NodeName): NodeInfo | undefined {
    return this.#nodes.get(name);
  }

  setNode(node: Node): void {
    const name = toNodeName(node.metadata?.name);
    const known = this.#nodes.get(name);
    const info = known === undefined ? new NodeInfo(node) : known.withNode(node);
    const arrived = this.#homeless.get(name);
    for (const pod of arrived?.values() ?? []) info.add(pod);
    this.#homeless.delete(name);
    // The pods of the node are counted again, because counts by domain depend on the labels of the node.
    if (known !== undefined) this.#forgetNode(known);
    this.#nodes.set(name, info);
    for (const pod of info.pods.values()) this.#counts.add(pod, info);
    this.#countImages(info, 1);
    this.#list = undefined;
    this.#domains.clear();
  }

  removeNode(name: NodeName): void {
    const known = this.#nodes.get(name);
    if (known === undefined) return;
    this.#forgetNode(known);
    this.#nodes.delete(name);
    this.#list = undefined;
    this.#domains.clear();
    if (known.pods.size > 0) this.#homeless.set(name, new Map(known.pods));
  }

  /** Sets a bound pod as read from the API. If the pod was assumed, this confirms the assumption. */
  setPod(pod: Pod): PodInfo {
    const info = podInfoOf(pod, this.placedPod(toUid(pod.metadata?.uid)));
    this.#assumed.delete(info.uid);
    const node = toNodeName(pod.spec?.nodeName);
    if (!this.#replaced(info, node)) this.#place(info, node);
    this.clearNomination(info.uid);
    return info;
  }

  /** The pod as it is counted now; undefined if it is neither bound nor assumed. */
  placedPod(uid: Uid): PodInfo | undefined {
    return this.#nodes.get(this.#nodeOf.get(uid) ?? NO_NODE)?.pods.get(uid);
  }

  /**
   * Replaces the pod without counting it again if the counted fields are equal. This is so for most changes of a bound
   * pod, and for the binding of an assumed pod.
   */
  #replaced(info: PodInfo, node: NodeName): boolean {
    const known = this.placedPod(info.uid);
    if (known === undefined || this.#nodeOf.get(info.uid) !== node || !countsAs(known, info)) return false;
    this.#nodes.get(node)?.pods.set(info.uid, info);
    return true;
  }

  /** Returns true if the pod occupied a node: it was bound, assumed or nominated. */
  removePod(uid: Uid): boolean {
    const wasPlaced = this.#nodeOf.has(uid);
    this.#assumed.delete(uid);
    const wasNominated = this.clearNomination(uid);
    this.#displace(uid);
    return wasPlaced || wasNominated;
  }

  /** Counts a pod on a node before the API has confirmed the binding. */
  assume(pod: PodInfo, node: NodeName): void {
    this.#assumed.add(pod.uid);
    this.#place(pod, node);
  }

  /** Reverts an assumption after a failed binding. Does nothing if the API has already reported the pod as bound. */
  forget(uid: Uid): void {
    if (!this.#assumed.delete(uid)) return;
    this.#displace(uid);
  }

  /** Temporarily removes a placed pod. The returned function restores the pod. */
  without(uid: Uid): () => void {
    const node = this.#nodeOf.get(uid);
    const info = this.placedPod(uid);
    if (node === undefined || info === undefined) return () => {};
    this.#displace(uid);
    return () => this.#place(info, node);
  }

  /** Whether the pod is bound or assumed. */
  isPlaced(uid: Uid): boolean {
    return this.#nodeOf.has(uid);
  }

  /**
   * Nodes on which resources are held for the pod: the node where it is bound or assumed, and the node where it is
   * nominated.
   */
  holds(uid: Uid): readonly NodeName[] {
    return [this.#nodeOf.get(uid), this.#nominated.get(uid)].filter((node) => node !== undefined);
  }

  isAssumed(uid: Uid): boolean {
    return this.#assumed.has(uid);
  }

  nominate(pod: PodInfo, node: NodeName): void {
    this.clearNomination(pod.uid);
    this.#nominated.set(pod.uid, node);
    const pods = this.#nominatedOn.get(node);
    if (pods === undefined) this.#nominatedOn.set(node, new Map([[pod.uid, pod]]));
    else pods.set(pod.uid, pod);
  }

  /** Returns true if the pod was nominated. */
  clearNomination(uid: Uid): boolean {
    const node = this.#nominated.get(uid);
    if (node === undefined) return false;
    this.#nominated.delete(uid);
    const pods = this.#nominatedOn.get(node);
    pods?.delete(uid);
    if (pods?.size === 0) this.#nominatedOn.delete(node);
    return true;
  }

  get hasNominations(): boolean {
    return this.#nominatedOn.size > 0;
  }

  nominatedNode(uid: Uid): NodeName | undefined {
    return this.#nominated.get(uid);
  }

  nominatedOn(node: NodeName): PodInfo[] {
    return [...(this.#nominatedOn.get(node)?.values() ?? [])];
  }

  #domainsOf(topologyKey: string): ReadonlySet<string> {
    const known = this.#domains.get(topologyKey);
    if (known !== undefined) return known;
    const values = new Set<string>();
    for (const node of this.#nodes.values()) {
      const value = node.label(topologyKey);
      if (value !== undefined) values.add(value);
    }
    this.#domains.set(topologyKey, values);
    return values;
  }

  #forgetNode(info: NodeInfo): void {
    for (const uid of info.pods.keys()) this.#counts.remove(uid);
    this.#countImages(info, -1);
  }

  #countImages({ images }: NodeInfo, by: 1 | -1): void {
    for (const image of images.keys()) {
      const count = (this.#imageHolders.get(image) ?? 0) + by;
      if (count === 0) this.#imageHolders.delete(image);
      else this.#imageHolders.set(image, count);
    }
  }

  #place(pod: PodInfo, node: NodeName): void {
    this.#displace(pod.uid);
    this.#nodeOf.set(pod.uid, node);
    const info = this.#nodes.get(node);
    if (info !== undefined) {
      info.add(pod);
      this.#counts.add(pod, info);
      return;
    }
    const waiting = this.#homeless.get(node);
    if (waiting === undefined) this.#homeless.set(node, new Map([[pod.uid, pod]]));
    else waiting.set(pod.uid, pod);
  }

  #displace(uid: Uid): void {
    const node = this.#nodeOf.get(uid);
    if (node === undefined) return;
    this.#nodeOf.delete(uid);
    this.#nodes.get(node)?.remove(uid);
    this.#counts.remove(uid);
    const waiting = this.#homeless.get(node);
    waiting?.delete(uid);
    if (waiting?.size === 0) this.#homeless.delete(node);
  }
}

/**
 * Whether both versions of a bound pod result in the same counts. Of the counted fields, only its requests can change.
 */
function countsAs(known: PodInfo, info: PodInfo): boolean {
  const [before, now] = [known.pod.metadata, info.pod.metadata];
  return (
    before?.deletionTimestamp === now?.deletionTimestamp &&
    sameAmounts(known.requests, info.requests) &&
    sameAmounts(known.assumed, info.assumed) &&
    (before?.labels === now?.labels || JSON.stringify(before?.labels) === JSON.stringify(now?.labels))
  );
}

/**
 * Orders nodes so that zones alternate, as upstream's node tree does. A search that ends early then covers every zone.
 */
function alternatingZones(nodes: readonly NodeInfo[]): NodeInfo[] {
  const zones = new Map<string, NodeInfo[]>();
  for (const node of nodes) {
    const zone = node.label(ZONE) ?? '';
    const members = zones.get(zone);
    if (members === undefined) zones.set(zone, [node]);
    else members.push(node);
  }
  if (zones.size <= 1) return [...nodes];
  const ordered: NodeInfo[] = [];
  const lists = [...zones.values()];
  for (let index = 0; ordered.length < nodes.length; index++) {
    for (const list of lists) {
      const node = list[index];
      if (node !== undefined) ordered.push(node);
    }
  }
  return ordered;
}
