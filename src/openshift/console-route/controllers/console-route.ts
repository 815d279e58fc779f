/**
 * Maintains the route of the API servers' console in the profile `okd`. The plan is made in
 * openshift/console-route/core.
 */
import type { KubeObject } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import type { ResourceClient } from '../../../client/types.ts';
import { createUnlessPresent } from '../../../controllers/framework/create-unless-present.ts';
import type { ControllerSpec } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { CONSOLE_NAME, CONSOLE_NAMESPACE, planConsole, type Step } from '../core/plan.ts';

const ENDPOINTS = { namespace: 'default', name: 'kubernetes' } as const;
const KEY = `${CONSOLE_NAMESPACE}/${CONSOLE_NAME}`;

export const consoleRouteController: ControllerSpec = {
  name: 'console-route',
  reads: [resources.services, resources.endpointSlices, resources.routes, resources.endpoints],
  writes: [resources.namespaces, resources.services, resources.endpointSlices, resources.routes],
  uses: ['router', 'rootCaPem'],
  prepare: (handle) => {
    const facts = handle.use('router');
    // Without the built-in router, no route is created. Another installation's API server has a router of its own.
    if (facts === undefined) return () => {};
    const caPem = handle.use('rootCaPem');
    const services = handle.informer(resources.services);
    const slices = handle.informer(resources.endpointSlices);
    const routes = handle.informer(resources.routes);
    const { namespace, name } = ENDPOINTS;
    const endpoints = handle.informer(resources.endpoints, { namespace, fieldSelector: `metadata.name=${name}` });
    const reconcile = async (): Promise<void> => {
      const plan = planConsole(
        { service: services.get(KEY), slice: slices.get(KEY), route: routes.get(KEY) },
        { isWanted: facts.hasConsole, domain: facts.domain, caPem, servers: endpoints.get(`${namespace}/${name}`) },
      );
      if ([plan.service, plan.slice, plan.route].some((step) => step?.kind === 'create'))
        await createUnlessPresent(() =>
          handle.writer(resources.namespaces).create({ metadata: { name: CONSOLE_NAMESPACE } }),
        );
      await perform(handle.writer(resources.services), plan.service);
      await perform(handle.writer(resources.endpointSlices), plan.slice);
      await perform(handle.writer(resources.routes), plan.route);
      if (plan.route !== undefined) handle.log.info('console route changed', { step: plan.route.kind });
    };
    return (scope) => {
      const queue = scope.queue(reconcile, 1);
      const wake = ({ metadata }: KubeObject): void => {
        if (metadata?.namespace === CONSOLE_NAMESPACE && metadata.name === CONSOLE_NAME) queue.add(KEY);
      };
      const follow = { added: wake, updated: wake, deleted: wake };
      scope.onChange(services, follow);
      scope.onChange(slices, follow);
      scope.onChange(routes, follow);
      const onServers = (): void => queue.add(KEY);
      scope.onChange(endpoints, { added: onServers, updated: onServers });
      queue.add(KEY);
    };
  },
};

async function perform<T extends KubeObject>(client: ResourceClient<T>, step: Step<T> | undefined): Promise<void> {
  if (step === undefined) return;
  if (step.kind === 'create') await createUnlessPresent(() => client.create(step.object));
  else if (step.kind === 'delete') await ignoreNotFound(() => client.delete(CONSOLE_NAME, CONSOLE_NAMESPACE));
  else await ignoreNotFound(() => client.patch(CONSOLE_NAME, CONSOLE_NAMESPACE, 'merge', step.change));
}
