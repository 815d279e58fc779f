/** Every file below `examples` is accepted by the product: bootstrap files, objects, rules and dashboards. */
import assert from 'node:assert/strict';
import { chmod, cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { rulesFile } from '../../src/host/alerts/alerts.ts';
import { registryOptions } from '../../src/host/config/registries.ts';
import { loadSettings } from '../../src/host/config/settings.ts';
import { startServer, type TestServer } from '../apiserver/harness.ts';

const ROOT = join(import.meta.dirname, '../..');
const EXAMPLES = join(ROOT, 'examples');
const files = (await readdir(EXAMPLES, { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile())
  .map((entry) => relative(EXAMPLES, join(entry.parentPath, entry.name)))
  .sort();
const isBootstrap = (file: string): boolean => /(^|\/)(bootstrap|first|join)\.yaml$/.test(file);
const isForPrometheus = (file: string): boolean => file.startsWith('monitoring/');
const objectFiles = files.filter(
  (file) =>
    file.endsWith('.yaml') && !isBootstrap(file) && !isForPrometheus(file) && basename(file) !== 'registries.yaml',
);

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

const documentsOf = async (file: string): Promise<unknown[]> =>
  parseAllDocuments(await readFile(join(EXAMPLES, file), 'utf8')).map((document) => {
    assert.deepEqual(document.errors, [], file);
    return document.toJS() as unknown;
  });

describe('examples', () => {
  let server: TestServer;
  let root = '';
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'examples-'));
    server = await startServer();
  });
  after(async () => {
    await server.stop();
    await rm(root, { recursive: true });
  });

  for (const file of files.filter(isBootstrap)) {
    it(`${file} is a valid bootstrap file`, async () => {
      const own = join(root, file);
      await cp(join(EXAMPLES, file), join(own, 'etc/origin/bootstrap.yaml'));
      await loadSettings({ root: own });
    });
  }

  it('air-gap/registries.yaml is a valid configuration of registries', async () => {
    const own = join(root, 'registries');
    await cp(join(EXAMPLES, 'air-gap/bootstrap.yaml'), join(own, 'etc/origin/bootstrap.yaml'));
    await cp(join(EXAMPLES, 'air-gap/registries.yaml'), join(own, 'etc/origin/registries.yaml'));
    await chmod(join(own, 'etc/origin/registries.yaml'), 0o600);
    const settings = await loadSettings({ root: own });
    await assert.rejects(registryOptions(settings), /mirror-ca.pem/, 'only the authority of the mirror is missing');
  });

  for (const file of objectFiles) {
    it(`${file} is accepted without unknown fields`, async () => {
      for (const document of (await documentsOf(file)) as Manifest[]) {
        const { apiVersion, kind, metadata } = document;
        const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
        const { body } = await server.call<{ resources: { name: string; kind: string }[] }>('GET', base);
        const plural = body.resources.find((each) => each.kind === kind && !each.name.includes('/'))?.name;
        assert.ok(plural !== undefined, `${apiVersion} ${kind} is not served`);
        const scope = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
        const answer = await server.call('POST', `${base}${scope}/${plural}?fieldValidation=Strict`, {
          body: document,
        });
        assert.equal(answer.code, 201, `${kind} ${metadata.name}: ${JSON.stringify(answer.body)}`);
        if (kind === 'Namespace') {
          // A controller creates this account, and this server runs without controllers.
          const account = { metadata: { name: 'default' } };
          await server.call('POST', `/api/v1/namespaces/${metadata.name}/serviceaccounts`, { body: account });
        }
      }
    });
  }

  it('rules and dashboards use only metrics that the product serves', async () => {
    const names = new Set<string>();
    const collect = (expression: string): void => {
      for (const [name] of expression.matchAll(/\b[a-z]+(?:_[a-z0-9]+)+\b(?!\s*\()/g))
        if (!/^(topk|histogram_quantile|on|by)$/.test(name)) names.add(name);
    };
    const [rules] = (await documentsOf('monitoring/prometheus-rules.yaml')) as [
      { spec: { groups: { rules: { alert: string; expr: string; annotations: Record<string, string> }[] }[] } },
    ];
    for (const { alert, expr, annotations } of rules.spec.groups.flatMap((group) => group.rules)) {
      assert.ok(annotations['summary'] && annotations['action'], `${alert} has a summary and an action`);
      collect(expr);
    }
    for (const file of files.filter((each) => each.endsWith('.json') && isForPrometheus(each))) {
      const { panels } = JSON.parse(await readFile(join(EXAMPLES, file), 'utf8'));
      for (const panel of panels) for (const { expr } of panel.targets) collect(expr);
    }
    const served = await metricNames();
    const missing = [...names].filter(
      (name) => !served.has(name) && !served.has(name.replace(/_(bucket|sum|count)$/, '')),
    );
    assert.deepEqual(missing, []);
    assert.ok(names.size > 15, [...names].join(' '));
  });

  it('monitoring/prometheus-rules.yaml equals the rules that every host evaluates', async () => {
    assert.equal(await readFile(join(EXAMPLES, 'monitoring/prometheus-rules.yaml'), 'utf8'), rulesFile());
  });

  it('the scrape configuration has a job for each source of metrics in the rules', async () => {
    const [config] = (await documentsOf('monitoring/scrape.yaml')) as [{ scrape_configs: { job_name: string }[] }];
    assert.deepEqual(
      config.scrape_configs.map(({ job_name }) => job_name),
      ['api', 'kubelet', 'kubelet-resource', 'kubelet-cadvisor', 'etcd'].map((name) => `hyperedge-${name}`),
    );
  });

  it('every folder is listed on the page of examples', async () => {
    const page = await readFile(join(EXAMPLES, 'README.md'), 'utf8');
    for (const folder of new Set(files.filter((file) => file.includes('/')).map((file) => file.split('/')[0])))
      assert.ok(page.includes(`\`${folder}\``), folder);
  });
});

/** Names of the metrics that the source code writes. */
async function metricNames(): Promise<Set<string>> {
  const sources = await readdir(join(ROOT, 'src'), { recursive: true });
  const texts = await Promise.all(
    sources.filter((file) => file.endsWith('.ts')).map((file) => readFile(join(ROOT, 'src', file), 'utf8')),
  );
  const found = new Set<string>();
  for (const text of texts)
    for (const [, name = ''] of text.matchAll(/['"`](?:# TYPE )?([a-z]+(?:_[a-z0-9]+)+)(?=['"` {])/g)) found.add(name);
  // The metrics of flow control share a prefix in the source.
  for (const name of [...found]) found.add(`apiserver_flowcontrol_${name}`);
  return found;
}
