/** The installed kubectl and, if available, Debian's 1.20, with resources of aggregated servers. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { kubectls } from '../../support/kubectls.ts';
import { run } from '../harness.ts';
import { GROUP, ROOT, VERSION } from './flunder-server.ts';
import { startMetricsServer } from './metrics-server.ts';
import { API_SERVICES, apiService, available, type Extended, publish, startExtended, writeSlice } from './setup.ts';

const FLUNDER = (name: string): string =>
  JSON.stringify({
    apiVersion: `${GROUP}/${VERSION}`,
    kind: 'Flunder',
    metadata: { name, namespace: 'default' },
    spec: { reference: 'x' },
  });

describe('kubectl and aggregated API servers', () => {
  let extended: Extended;
  before(async () => {
    extended = await startExtended();
  });
  after(() => extended.stop());
  for (const { label, path } of kubectls()) {
    const kubectl = async (args: string, input?: string): Promise<string> => {
      const { kubeconfig, directory } = extended.main;
      const common = ['--kubeconfig', kubeconfig, '--cache-dir', `${directory}/${label}`];
      const { code, stdout, stderr } = await run(path, [...common, ...args.split(' ')], input, 60_000);
      assert.equal(code, 0, `kubectl ${args}: ${stderr}`);
      return stdout;
    };

    it(`kubectl lists, creates and explains resources of aggregated API servers (${label})`, async () => {
      const name = `from-${label}`;
      assert.match(await kubectl('get apiservices'), /v1alpha1\.wardle\.example\.com +default\/flunders +True +\d+/);
      assert.match(await kubectl('get apiservices'), /v1\.apps +Local +True +\d+/);
      assert.match(await kubectl('api-resources'), /flunders +fl +wardle\.example\.com\/v1alpha1 +true +Flunder/);
      assert.match(await kubectl('create -f -', FLUNDER(name)), /created/);
      assert.match(await kubectl('get flunders'), new RegExp(`^NAME +AGE\n(?:.*\n)*${name} +`));
      assert.match(await kubectl('get fl -o name'), new RegExp(`flunder\\.wardle\\.example\\.com/${name}`));
      assert.match(await kubectl('explain flunder.spec.reference'), /What it is about\./);
      assert.match(await kubectl('explain flunders'), /A flunder is what it is\./);
      assert.match(await kubectl(`get --raw ${ROOT}`), /"APIResourceList"/);
      // Resources of the main server keep their own descriptions.
      assert.doesNotMatch(await kubectl('explain pod.metadata'), /Its own name\./);
      assert.match(await kubectl('explain flunder.metadata.name'), /Its own name\./);
      assert.match(await kubectl(`delete flunder ${name}`), /deleted/);
    });
  }

  it('kubectl reports unavailable aggregated groups and lists the available groups', async () => {
    const { main, flunders } = extended;
    await writeSlice(main, 'flunders', flunders.port, []);
    await available(main, 'MissingEndpoints');
    for (const { label, path } of kubectls()) {
      const common = ['--kubeconfig', main.kubeconfig, '--cache-dir', `${main.directory}/down-${label}`];
      const { stdout } = await run(path, [...common, 'get', 'apiservices'], undefined, 60_000);
      assert.match(stdout, /v1alpha1\.wardle\.example\.com +default\/flunders +False \(MissingEndpoints\) +\d+/);
      const listed = await run(path, [...common, 'get', 'namespaces'], undefined, 60_000);
      assert.equal(listed.code, 0, listed.stderr);
      assert.match(listed.stdout, /kube-system +Active/);
    }
    await writeSlice(main, 'flunders', flunders.port, ['127.0.0.1']);
    await available(main, 'Passed');
  });

  it('shows resource usage once metrics-server is installed', async () => {
    const { main } = extended;
    const metrics = await startMetricsServer(main);
    try {
      await publish(main, 'metrics-server', metrics.port);
      const name = 'v1beta1.metrics.k8s.io';
      // Metrics-server replaces the built-in metrics API.
      const { metadata } = JSON.parse((await main.call('GET', `${API_SERVICES}/${name}`)).text);
      const made = await main.call('PUT', `${API_SERVICES}/${name}`, {
        body: { ...apiService(metrics.caBundle, 'metrics-server', name), metadata },
      });
      assert.equal(made.code, 200, made.text);
      await available(main, 'Passed', name);
      const capacity = { cpu: '2', memory: '4Gi', pods: '10' };
      await main.call('POST', '/api/v1/nodes', {
        body: { metadata: { name: 'n1' }, status: { capacity, allocatable: capacity } },
      });
      for (const { label, path } of kubectls()) {
        const common = ['--kubeconfig', main.kubeconfig, '--cache-dir', `${main.directory}/top-${label}`];
        const { stdout, stderr } = await run(path, [...common, 'top', 'nodes'], undefined, 60_000);
        assert.match(stdout, /n1 +500m +25% +1024Mi +25%/, stderr);
      }
    } finally {
      await metrics.stop();
    }
  });
});
