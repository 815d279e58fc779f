import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Route } from '../../../src/network/router/kinds/routes/types.ts';
import {
  type ConsoleFacts,
  type ConsoleObjects,
  MANAGED_LABEL,
  planConsole,
} from '../../../src/openshift/console-route/core/plan.ts';

const NONE: ConsoleObjects = { service: undefined, slice: undefined, route: undefined };
const facts = (changes: Partial<ConsoleFacts> = {}): ConsoleFacts => ({
  isWanted: true,
  domain: 'apps.lab',
  caPem: 'CA 1',
  servers: { subsets: [{ addresses: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }], ports: [{ port: 8443 }] }] },
  ...changes,
});

/** Objects after the steps of a plan for a cluster without them. */
function made(given = facts()): ConsoleObjects {
  const { service, slice, route } = planConsole(NONE, given);
  assert.ok(service?.kind === 'create' && slice?.kind === 'create' && route?.kind === 'create');
  return { service: service.object, slice: slice.object, route: route.object };
}

describe('route of the console', () => {
  it('the console route has all API servers as endpoints, and the router verifies their certificates', () => {
    const { slice, route } = made();
    assert.deepEqual(
      slice?.endpoints?.map(({ addresses }) => addresses),
      [['10.0.0.1'], ['10.0.0.2']],
    );
    assert.deepEqual(slice?.ports, [{ name: 'https', port: 8443, protocol: 'TCP' }]);
    assert.equal(route?.spec?.host, 'console-openshift-console.apps.lab');
    assert.equal(route?.spec?.tls?.termination, 'reencrypt');
    assert.equal(route?.spec?.tls?.destinationCACertificate, 'CA 1');
  });

  it('the console route is created in one plan, and patched when API servers, CA or domain change', () => {
    const present = made();
    assert.deepEqual(planConsole(present, facts()), { service: undefined, slice: undefined, route: undefined });
    const servers = { subsets: [{ addresses: [{ ip: '10.0.0.2' }], ports: [{ port: 8443 }] }] };
    const fewer = planConsole(present, facts({ servers }));
    assert.equal(fewer.slice?.kind, 'patch');
    assert.equal(fewer.route, undefined);
    assert.equal(planConsole(present, facts({ caPem: 'CA 2' })).route?.kind, 'patch');
    const moved = planConsole(present, facts({ domain: 'apps.new' })).route;
    assert.ok(moved?.kind === 'patch');
    assert.match(JSON.stringify(moved.change), /console-openshift-console\.apps\.new/);
  });

  it('deletes the console route when the console is disabled', () => {
    const { service, slice, route } = planConsole(made(), facts({ isWanted: false }));
    assert.deepEqual([service?.kind, slice?.kind, route?.kind], ['delete', 'delete', 'delete']);
    assert.deepEqual(planConsole(NONE, facts({ isWanted: false })), {
      service: undefined,
      slice: undefined,
      route: undefined,
    });
  });

  it('never changes the route of a console that an administrator has installed', () => {
    const present = made();
    const route: Route = { ...present.route, metadata: { name: 'console', namespace: 'openshift-console' } };
    assert.deepEqual(planConsole({ ...NONE, route }, facts()), {});
    assert.equal(planConsole({ ...NONE, route }, facts({ isWanted: false })).route, undefined);
    assert.equal(route.metadata?.labels?.[MANAGED_LABEL], undefined);
  });

  it('creates no console route before the addresses of the API servers are known', () => {
    assert.deepEqual(planConsole(NONE, facts({ servers: undefined })), {});
  });
});
