/**
 * Scales the workloads of idled services up again when a router or proxy reports traffic by an Event. Source:
 * openshift/openshift-controller-manager pkg/unidling/controller.
 */
import type { Event } from '../../../api/generated/core/v1.ts';
import {
  IDLED_AT,
  isIdled,
  NEED_PODS,
  UNIDLE_TARGETS,
  type UnidleTarget,
  unidleTargets,
} from '../../../api/kinds/network/services/idling.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import type { Scale } from '../../framework/scale.ts';

/** Paths of the scalable kinds that `oc idle` records for a service, by `KIND.GROUP`. */
const PATHS: ReadonlyMap<string, (namespace: string) => string> = new Map([
  ['ReplicationController.', (namespace) => `/api/v1/namespaces/${namespace}/replicationcontrollers`],
  ['Deployment.apps', (namespace) => `/apis/apps/v1/namespaces/${namespace}/deployments`],
  ['ReplicaSet.apps', (namespace) => `/apis/apps/v1/namespaces/${namespace}/replicasets`],
  ['StatefulSet.apps', (namespace) => `/apis/apps/v1/namespaces/${namespace}/statefulsets`],
]);

export const unidlingController: ControllerSpec = {
  name: 'unidling',
  eventSource: 'unidling-controller',
  reads: [resources.events],
  writes: [resources.services, resources.endpoints],
  uses: ['read', 'updateScale'],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const events = handle.informer(resources.events, { fieldSelector: `reason=${NEED_PODS}` });
  const services = handle.writer(resources.services);
  const endpoints = handle.writer(resources.endpoints);
  const read = handle.use('read');
  const updateScale = handle.use('updateScale');

  const scaleUp = async (namespace: string, target: UnidleTarget, signal: AbortSignal): Promise<void> => {
    const { kind, group, name, replicas } = target;
    const path = PATHS.get(`${kind}.${group}`)?.(namespace);
    if (path === undefined) {
      handle.log.warn('idled workload not scaled up: unknown kind', { namespace, kind, group, name });
      return;
    }
    const scale = await read<Scale>(`${path}/${name}/scale`, signal);
    // The workload runs already: another client has scaled it up.
    if ((scale.spec?.replicas ?? 0) > 0) return;
    await updateScale(`${path}/${name}/scale`, { ...scale, spec: { ...scale.spec, replicas } });
    handle.log.info('idled workload scaled up', { namespace, kind, name, replicas });
  };

  return async (scope) => {
    /** Last occurrence of each Event that existed before this process watched Events. */
    const before = new Map<string, number>();
    const queue = scope.queue(async (key) => {
      const [namespace = '', name = ''] = key.split('/');
      const service = await services.get(name, namespace).catch((error: unknown) => {
        if (isApiError(error, 'NotFound')) return undefined;
        throw error;
      });
      const sinceMs = before.get(key);
      before.delete(key);
      if (service === undefined || !isIdled(service)) return;
      // Traffic reported before the service was idled is ignored.
      if (sinceMs !== undefined && sinceMs < Date.parse(service.metadata?.annotations?.[IDLED_AT] ?? '')) return;
      for (const target of unidleTargets(service)) await ignoreNotFound(() => scaleUp(namespace, target, scope.signal));
      const change = { metadata: { annotations: { [IDLED_AT]: null, [UNIDLE_TARGETS]: null } } };
      await ignoreNotFound(() => endpoints.patch(name, namespace, 'merge', change));
      await ignoreNotFound(() => services.patch(name, namespace, 'merge', change));
    }, 2);
    const wake = ({ involvedObject, lastTimestamp, metadata }: Event): void => {
      const { kind, name, namespace } = involvedObject;
      if (kind !== 'Service' || !name || !namespace || namespace !== metadata.namespace) return;
      const key = `${namespace}/${name}`;
      if (events.hasSynced) before.delete(key);
      else before.set(key, Math.max(before.get(key) ?? 0, Date.parse(lastTimestamp ?? '') || 0));
      queue.add(key);
    };
    scope.onChange(events, { added: wake, updated: wake });
  };
}
