/**
 * The labels that `kubectl get nodes` shows as ROLES. A kubelet must not give them to itself (NodeRestriction), so the host that holds the
 * administrator's credentials gives them to its node, as OKD's installer did.
 */
import type { Node } from 'kubernetes-types/core/v1';
import { resources } from '../api/resources.ts';
import { messageOf } from '../base/errors.ts';
import type { InformerFactory } from '../client/index.ts';
import { type ClientContext, openClient } from './api-access.ts';

export interface NodeRolesOptions extends ClientContext {
  readonly informers: InformerFactory;
  readonly nodeName: string;
  readonly adminKubeconfig: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Labels the node whenever it appears without them. Returns the end of it. */
export function keepNodeRoles(options: NodeRolesOptions): () => void {
  const { nodeName, labels, log } = options;
  let busy = false;
  const label = async (): Promise<void> => {
    const admin = await openClient(options.adminKubeconfig, 'hyperedge', options);
    try {
      await admin.client.resource(resources.nodes).patch(nodeName, undefined, 'merge', { metadata: { labels } });
    } finally {
      await admin.close();
    }
  };
  const look = (node: Node): void => {
    const missing = Object.keys(labels).some((name) => node.metadata?.labels?.[name] === undefined);
    if (!missing || busy) return;
    busy = true;
    label()
      .catch((error: unknown) => log.warn('node roles not written', { error: messageOf(error) }))
      .finally(() => {
        busy = false;
      });
  };
  const informer = options.informers.informer(resources.nodes, { fieldSelector: `metadata.name=${nodeName}` });
  return informer.onChange({ added: look, updated: look });
}
