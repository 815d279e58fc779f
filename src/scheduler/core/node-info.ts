/** A node with its pods, and the sums of requests that filters and scorers need. */

import type { Node } from '../../api/generated/core/v1.ts';
import { reservedPortsOf } from '../../api/kinds/nodes/nodes/host-ports.ts';
import { type Amounts, add, amountsOf } from '../../api/podspec/scheduling/node-resources.ts';
import { type HostPort, hostPortsOnAllAddresses, type PodInfo } from '../../api/podspec/scheduling/pod-info.ts';
import { type NodeName, toNodeName, type Uid } from '../../base/brand.ts';

export class NodeInfo {
  readonly name: NodeName;
  readonly node: Node;
  readonly allocatable: Amounts;
  /** Sizes of the images on the node, in bytes, by name of the image. */
  readonly images: ReadonlyMap<string, number>;
  /** Ports that the host itself uses, whether or not a pod declares them. */
  readonly reservedPorts: readonly HostPort[];
  readonly pods = new Map<Uid, PodInfo>();
  readonly requested = new Map<string, number>();
  readonly assumed = new Map<string, number>();

  constructor(node: Node) {
    this.node = node;
    this.name = toNodeName(node.metadata?.name);
    this.reservedPorts = hostPortsOnAllAddresses(reservedPortsOf(node));
    this.allocatable = amountsOf(node.status?.allocatable ?? node.status?.capacity);
    const images = new Map<string, number>();
    for (const image of node.status?.images ?? []) {
      for (const name of image.names ?? []) images.set(normalizedImage(name), image.sizeBytes ?? 0);
    }
    this.images = images;
  }

  add(pod: PodInfo): void {
    if (this.pods.has(pod.uid)) this.remove(pod.uid);
    this.pods.set(pod.uid, pod);
    add(this.requested, pod.requests);
    add(this.assumed, pod.assumed);
  }

  remove(uid: Uid): PodInfo | undefined {
    const pod = this.pods.get(uid);
    if (pod === undefined) return undefined;
    this.pods.delete(uid);
    add(this.requested, pod.requests, -1);
    add(this.assumed, pod.assumed, -1);
    return pod;
  }

  /** Returns a copy with the same pods and a newer Node object. */
  withNode(node: Node): NodeInfo {
    const info = new NodeInfo(node);
    for (const pod of this.pods.values()) info.add(pod);
    return info;
  }

  copy(): NodeInfo {
    return this.withNode(this.node);
  }

  label(key: string): string | undefined {
    const labels = this.node.metadata?.labels;
    return labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
  }
}

/** Appends `:latest` to an image name without tag and digest, because the runtime lists images with a tag. */
export function normalizedImage(name: string): string {
  return name.lastIndexOf(':') <= name.lastIndexOf('/') && !name.includes('@') ? `${name}:latest` : name;
}
