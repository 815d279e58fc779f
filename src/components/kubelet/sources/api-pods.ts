/**
 * Pods of the API: those that the API server says, or, when the host starts without one in reach, those that were bound
 * to it when it was last heard. The latter run, and nothing is ended on their account; once the API server's own list
 * has come, pods that were deleted meanwhile are ended and changed ones updated.
 */
import type { Node, Pod, Service } from 'kubernetes-types/core/v1';
import type { KubeObject } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type { Informer, InformerFactory } from '../../../client/types.ts';
import type { PodManager } from '../pods/pod-manager.ts';
import { isMirror } from './static-pod.ts';

export interface ApiPodsOptions {
  readonly informers: InformerFactory;
  readonly nodeName: string;
  readonly manager: PodManager;
  readonly clock: Clock;
  readonly log: Log;
  /** Called once, with the API server's own list: the uids that are bound here. */
  readonly onListed: (uids: ReadonlySet<string>) => void;
}

export interface ApiPods {
  readonly services: Informer<Service>;
  readonly nodes: Informer<Node>;
  stop(): Promise<void>;
}

/** Last known services and node are read together with the pods; pods that were admitted before start without them. */
const COMPANIONS_MS = 1_000;

export function followApiPods(options: ApiPodsOptions): ApiPods {
  const { informers, nodeName, manager, clock, log } = options;
  const pods = informers.informer(resources.pods, {
    fieldSelector: `spec.nodeName=${nodeName}`,
    lastKnown: { set: 'pods', pace: 'soon', kept: keptPod },
  });
  const services: Informer<Service> = informers.informer(resources.services, {
    // The service proxy writes it.
    lastKnown: { set: 'services', readOnly: true },
  });
  const nodes: Informer<Node> = informers.informer(resources.nodes, {
    fieldSelector: `metadata.name=${nodeName}`,
    lastKnown: { set: 'node', kept: keptNode },
  });
  let stopped = false;
  let unsubscribe = (): void => {};
  const take = (pod: Pod): void => {
    if (pods.hasListed) manager.setApiPod(pod);
    else manager.setLastKnownPod(pod);
  };
  const follow = async (): Promise<void> => {
    // Services are part of a container's environment, and the node says whom it takes: no pod of the API starts before
    // both are known.
    const companions = Promise.all([services.synced, nodes.synced]);
    await pods.synced;
    if (!pods.hasListed) {
      await Promise.race([companions, pods.listed, new Promise<void>((done) => clock.setTimer(COMPANIONS_MS, done))]);
    }
    if (pods.hasListed) await companions;
    if (stopped) return;
    if (!pods.hasListed) log.warn('API server not in reach: running the last known pods', { pods: pods.list().length });
    unsubscribe = pods.onChange({ added: take, updated: take, deleted: (pod) => manager.removeApiPod(pod) });
    await pods.listed;
    if (stopped) return;
    manager.sourceSynced('api');
    options.onListed(new Set(pods.list().map(({ metadata }) => metadata?.uid ?? '')));
  };
  for (const informer of [pods, services, nodes]) informer.start();
  void follow();
  return {
    services,
    nodes,
    async stop() {
      stopped = true;
      unsubscribe();
      await Promise.all([pods.stop(), services.stop(), nodes.stop()]);
    },
  };
}

/** Mirrors are made from manifests again; what is being deleted or is over shall not start again. */
function keptPod(object: KubeObject): KubeObject | undefined {
  const pod = object as Pod;
  if (isMirror(pod) || pod.metadata?.deletionTimestamp !== undefined) return undefined;
  const { phase } = pod.status ?? {};
  return phase === 'Succeeded' || phase === 'Failed' ? undefined : object;
}

/** Without its status, which changes with every heartbeat. */
function keptNode({ apiVersion, kind, metadata, spec }: Node): KubeObject {
  return { ...{ apiVersion, kind }, metadata: metadata ?? {}, ...(spec === undefined ? {} : { spec }) } as KubeObject;
}
