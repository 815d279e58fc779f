/** The operator lifecycle manager on a real API server; pods are played. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { resources } from '../../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from './harness.ts';
import { packageOf, writeCatalog } from './olm-catalogs.ts';

const POLL = { registryPoll: { interval: '5s' } };

describe('operator lifecycle manager', () => {
  let plane: ControlPlane;
  let catalogs: string;

  before(async () => {
    catalogs = await mkdtemp(join(tmpdir(), 'he-olm-'));
    plane = await startControlPlane({
      catalogs,
      router: true,
      ...(process.env['OLM_LOG'] === undefined ? {} : { logLevel: 2 }),
    });
    await plane.addNode('n1');
    await plane.of(resources.namespaces).create({ metadata: { name: 'openshift-marketplace' } });
  });
  after(async () => {
    await plane.stop();
    await rm(catalogs, { recursive: true, force: true });
  });

  const namespace = async (name: string, targets: readonly string[] = [name], serviceAccountName?: string) => {
    await plane.of(resources.namespaces).create({ metadata: { name } });
    await plane.of(resources.operatorGroups).create({
      metadata: { name: 'group', namespace: name },
      spec: {
        targetNamespaces: [...targets],
        ...(serviceAccountName === undefined ? {} : { serviceAccountName }),
      },
    });
  };
  const catalog = (name: string) =>
    plane.of(resources.catalogSources).create({
      metadata: { name, namespace: 'openshift-marketplace' },
      spec: {
        sourceType: 'grpc',
        address: `file://${join(catalogs, name)}`,
        displayName: name,
        updateStrategy: POLL,
      },
    });
  const subscribe = (name: string, at: string, source: string, more: object = {}) =>
    plane.of(resources.subscriptions).create({
      metadata: { name, namespace: at },
      spec: { name, source, sourceNamespace: 'openshift-marketplace', ...more },
    });
  const phaseOf = (name: string, at: string, phase: string, timeoutMs = 20_000) =>
    eventually(
      async () => {
        const csv = await plane.of(resources.clusterServiceVersions).get(name, at);
        assert.equal(csv.status?.phase, phase, `${csv.status?.reason}: ${csv.status?.message}`);
        return csv;
      },
      `${name} ${phase}`,
      timeoutMs,
    );

  it('installs the newest version of a channel, and upgrades after an approval', async () => {
    const crd = { plural: 'webs', kind: 'Web' };
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }];
    const v1 = { name: 'web', version: '1.0.0', crd, rules };
    await writeCatalog(join(catalogs, 'lab'), packageOf('web', [v1]));
    await catalog('lab');
    await namespace('shop');
    await subscribe('web', 'shop', 'lab');
    const csv = await phaseOf('web.v1.0.0', 'shop', 'Succeeded');
    assert.deepEqual(
      csv.status?.requirementStatus?.map(({ kind, status }) => [kind, status]),
      [
        ['CustomResourceDefinition', 'Present'],
        ['ServiceAccount', 'Present'],
      ],
    );
  });
});
