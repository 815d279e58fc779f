/**
 * Pods from the API. If the host starts without a reachable API server, pods that were last known to be bound to it are
 * run, and no pod is ended. After the API server's list arrives, deleted pods are ended and changed ones updated.
 */
import type { Node, Pod, Service } from '../../api/generated/core/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { resources } from '../../api/resources.ts';
import { type NodeName, toUid, type Uid } from '../../base/brand.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { Informer, InformerFactory } from '../../client/types.ts';
import type { PodManager } from '../pods/pod-manager.ts';
import { isMirror } from './static-pod.ts';

export interface ApiPodsOptions {
  readonly informers: InformerFactory;
  readonly nodeName: NodeName;
  readonly manager: PodManager;
  readonly clock: Clock;
  readonly log: Log;
  /** Called once with the UIDs of the API server's list of pods bound to this node. */
  readonly onListed: (uids: ReadonlySet<Uid>) => void;
}

export interface ApiPods {
  readonly services: Informer<Service>;
  readonly nodes: Informer<Node>;
  stop(): Promise<void>;
}

/**
 * Maximum wait for last known services and node, which are read with the pods. After this time, previously admitted
 * pods start without them.
 */
const COMPANIONS_MS = 1_000;

export function followApiPods(options: ApiPodsOptions): ApiPods {
  const { informers, nodeName, manager, clock, log } = options;
  const pods = informers.informer(resources.pods, {
    fieldSelector: `spec.nodeName=${nodeName}`,
    lastKnown: { set: 'pods', pace: 'soon', kept: keptPod },
  });
  const services: Informer<Service> = informers.informer(resources.services, {
    // The service proxy writes this set; the kubelet only reads it.
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
    // Services are part of a container's environment, and the Node decides admission, so no API pod starts before both
    // are known.
    const companions = Promise.all([services.synced, nodes.synced]);
    await pods.synced;
    if (!pods.hasListed) {
      await Promise.race([companions, pods.listed, new Promise<void>((done) => clock.setTimer(COMPANIONS_MS, done))]);
    }
    if (pods.hasListed) await companions;
    if (stopped) return;
    if (!pods.hasListed) log.warn('API server unreachable: running the last known pods', { pods: pods.list().length });
    unsubscribe = pods.onChange({ added: take, updated: take, deleted: (pod) => manager.removeApiPod(pod) });
    await pods.listed;
    if (stopped) return;
    manager.sourceSynced('api');
    options.onListed(new Set(pods.list().map(({ metadata }) => toUid(metadata?.uid))));
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

/** Excludes mirror pods, which are created again from manifests, and pods that are terminating or terminated. */
function keptPod(object: KubeObject): KubeObject | undefined {
  const pod = object as Pod;
  if (isMirror(pod) || pod.metadata?.deletionTimestamp !== undefined) return undefined;
  const { phase } = pod.status ?? {};
  return phase === 'Succeeded' || phase === 'Failed' ? undefined : object;
}

/** Returns the Node without its status, which changes with every heartbeat. */
function keptNode({ apiVersion, kind, metadata, spec }: Node): KubeObject {
  return { apiVersion, kind, metadata: metadata ?? {}, ...(spec === undefined ? {} : { spec }) } as KubeObject;
}
