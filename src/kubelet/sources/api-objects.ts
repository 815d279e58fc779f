import type { Node, Service } from '../../api/generated/core/v1.ts';
import type { Informer } from '../../client/types.ts';

/** The Node of this kubelet and the services of the cluster. Both are unknown until `follow` is called. */
export class ApiObjects {
  #nodes: Informer<Node> | undefined;
  #services: Informer<Service> | undefined;

  follow({ nodes, services }: { readonly nodes: Informer<Node>; readonly services: Informer<Service> }): void {
    this.#nodes = nodes;
    this.#services = services;
  }

  /** Undefined until it has been read. */
  node(): Node | undefined {
    return this.#nodes?.list()[0];
  }

  services(): readonly Service[] {
    return this.#services?.list() ?? [];
  }
}
