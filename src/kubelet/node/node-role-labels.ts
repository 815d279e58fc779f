/**
 * Sets the node-role labels, which are the ROLES column of `kubectl get nodes`, and annotations. NodeRestriction
 * forbids a kubelet to set them on its own Node, so the host uses the administrator's credentials.
 */
import type { Node } from '../../api/generated/core/v1.ts';
import { resources } from '../../api/resources.ts';
import type { NodeName } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { ApiClient, InformerFactory } from '../../client/index.ts';

export interface NodeRoleLabelsOptions {
  readonly informers: InformerFactory;
  readonly nodeName: NodeName;
  readonly labels: Readonly<Record<string, string>>;
  /** Annotations with their current values. */
  readonly annotations?: () => Readonly<Record<string, string>>;
  /** Opens a client with the administrator's credentials. Throws the CodedErrors of its kubeconfig. */
  openAdmin(): Promise<{ readonly client: ApiClient; close(): Promise<void> }>;
  readonly clock: Clock;
  readonly log: Log;
}

const RETRY_MS = 2_000;

/**
 * Sets missing labels and differing annotations whenever the Node is added or updated. Returns a function that ends the
 * updates.
 */
export function keepNodeRoleLabels(options: NodeRoleLabelsOptions): () => void {
  const { nodeName, labels, clock, log } = options;
  let busy = false;
  let timer: Timer | undefined;
  const label = async (): Promise<void> => {
    const admin = await options.openAdmin();
    try {
      const metadata = { labels, annotations: options.annotations?.() ?? {} };
      await admin.client.resource(resources.nodes).patch(nodeName, undefined, 'merge', { metadata });
    } finally {
      await admin.close();
    }
  };
  const setMissing = (node: Node): void => {
    const missing = Object.keys(labels).some((name) => node.metadata?.labels?.[name] === undefined);
    const annotations = Object.entries(options.annotations?.() ?? {});
    const differs = annotations.some(([name, value]) => node.metadata?.annotations?.[name] !== value);
    if ((!missing && !differs) || busy) return;
    busy = true;
    label()
      .catch((error: unknown) => {
        // Retry here, because no further Node update may arrive: the API server of a joining master starts after its
        // Node is registered.
        log.warn('node role labels not set; retrying', { node: nodeName, error: messageOf(error) });
        timer?.cancel();
        timer = clock.setTimer(RETRY_MS, () => setMissing(node));
      })
      .finally(() => {
        busy = false;
      });
  };
  const informer = options.informers.informer(resources.nodes, { fieldSelector: `metadata.name=${nodeName}` });
  const unsubscribe = informer.onChange({ added: setMissing, updated: setMissing });
  return () => {
    timer?.cancel();
    unsubscribe();
  };
}
