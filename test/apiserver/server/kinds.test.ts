/** Creates and shows every kind in every version with kubectl, which also tests OpenAPI, discovery and tables. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { apiVersionOf, type KubeObject } from '../../../src/api/meta/object.ts';
import type { KindAlias, KindDefinition } from '../../../src/api/registry/definition.ts';
import { servedAs } from '../../../src/api/registry/versions.ts';
import { defaulted, sample, sampleNameOf, storedKinds } from '../../api/kinds/samples.ts';
import { kubectls } from '../../support/kubectls.ts';
import { type Ran, run, startServer, type TestServer } from '../harness.ts';

/**
 * All kinds except definitions and APIServices, whose names depend on their content and which have their own tests, and
 * certificate requests, which need a real request.
 */
const created = storedKinds.filter(
  ({ verbs, kind, group }) =>
    verbs.includes('create') &&
    // Objects of these groups are singletons that exist from the start.
    !['config.openshift.io', 'operator.openshift.io'].includes(group) &&
    !['APIService', 'CertificateSigningRequest', 'CustomResourceDefinition', 'Event'].includes(kind),
);

function document(kind: KindDefinition, name: string, alias?: KindAlias): KubeObject {
  const stored = alias === undefined ? sample(sampleNameOf(kind)) : defaulted(sampleNameOf(kind));
  delete stored['status'];
  const shown = alias === undefined ? stored : alias.convertFrom(stored);
  return {
    ...shown,
    apiVersion: apiVersionOf(alias ?? kind),
    kind: servedAs(kind, alias).kind,
    metadata: { ...shown.metadata, name, ...(kind.namespaced ? { namespace: 'ns' } : {}) },
  };
}

/** A valid name: some kinds are named after an address, a hash or a pair of names. */
function nameOf(kind: KindDefinition): string {
  if (kind.nameRule === 'ipAddress') return '10.9.8.7';
  const { name } = sample(sampleNameOf(kind)).metadata;
  return typeof name === 'string' && /[:~]/.test(name) ? name : 'one';
}

const listOf = (items: readonly KubeObject[]): string => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });

for (const { label, path } of kubectls()) {
  describe(`all kinds with kubectl (${label})`, () => {
    let server: TestServer;
    before(async () => {
      server = await startServer({ config: { runtimeConfig: new Map([['api/all', true]]) } });
      await server.call('POST', '/api/v1/namespaces', { body: { metadata: { name: 'ns' } } });
      await server.call('POST', '/api/v1/namespaces/ns/serviceaccounts', { body: { metadata: { name: 'default' } } });
    });
    after(() => server.stop());
    const kubectl = (args: string, input?: string): Promise<Ran> =>
      run(
        path,
        ['--kubeconfig', server.kubeconfig, '--cache-dir', server.directory, '-n', 'ns', ...args.split(' ')],
        input,
        60_000,
      );

    it('kubectl creates one object of each kind', async () => {
      const { code, stderr, stdout } = await kubectl(
        'create -f -',
        listOf(created.map((kind) => document(kind, nameOf(kind)))),
      );
      assert.equal(code, 0, stderr);
      assert.equal(stdout.trim().split('\n').length, created.length);
    });

    it('kubectl creates an object of each kind in every older version', async () => {
      const older = created.flatMap((kind) =>
        (kind.aliases ?? [])
          .filter(({ names }) => names?.verbs.includes('create') !== false)
          .map((alias, index) => document(kind, `older${index}`, alias)),
      );
      const { code, stderr } = await kubectl('create -f -', listOf(older));
      assert.equal(code, 0, stderr);
    });

    it('kubectl lists the objects of all kinds, as a table and with -o wide', async () => {
      const requested = created.map(({ plural, group }) => (group === '' ? plural : `${plural}.${group}`)).join(',');
      const { code, stdout, stderr } = await kubectl(`get ${requested} -o wide`);
      assert.equal(code, 0, stderr);
      for (const kind of created) {
        const { singular, group } = kind;
        const name = `${group === '' ? singular : `${singular}.${group}`}/${nameOf(kind)}`;
        assert.ok(stdout.includes(name), `${name} in ${stdout}`);
      }
    });
  });
}
