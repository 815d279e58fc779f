/** Route of the console on a real API server with its controllers. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { resources } from '../../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../controllers/harness.ts';

const NAMESPACE = 'openshift-console';
const ENDPOINTS = { name: 'kubernetes', namespace: 'default' };

describe('controller of the console route', () => {
  let plane: ControlPlane;
  before(async () => {
    plane = await startControlPlane({ router: true, console: true });
  });
  after(() => plane.stop());

  const url = async (): Promise<string | undefined> =>
    (await plane.of(resources.configMaps).get('console-public', 'openshift-config-managed')).data?.['consoleURL'];
  const isPublished = async () => (await url()) === 'https://console-openshift-console.apps.lab.example';
  const announce = (...ips: readonly string[]) =>
    plane.of(resources.endpoints).patch(ENDPOINTS.name, ENDPOINTS.namespace, 'merge', {
      subsets: [{ addresses: ips.map((ip) => ({ ip })), ports: [{ name: 'https', port: 8443 }] }],
    });

  it('creates the console route once API servers are announced, publishes its URL and restores changed objects', async () => {
    await plane
      .of(resources.endpoints)
      .create({ metadata: ENDPOINTS, subsets: [] })
      .catch(() => undefined);
    await announce('10.0.0.1');
    await eventually(isPublished, 'the URL of the console');
    await announce('10.0.0.1', '10.0.0.2');
    await eventually(async () => {
      const { endpoints } = await plane.of(resources.endpointSlices).get('console', NAMESPACE);
      return endpoints?.length === 2;
    }, 'both API servers');
    const { metadata } = await plane.of(resources.routes).get('console', NAMESPACE);
    await plane.of(resources.routes).delete('console', NAMESPACE);
    await eventually(async () => {
      const again = await plane
        .of(resources.routes)
        .get('console', NAMESPACE)
        .catch(() => undefined);
      return again !== undefined && again.metadata?.uid !== metadata?.uid;
    }, 'a new route');
    await eventually(isPublished, 'the URL of the console again');
    assert.notEqual(metadata?.uid, undefined);
  });
});
