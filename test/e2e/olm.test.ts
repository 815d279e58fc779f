/**
 * Operators from catalogs with the packaged executable: from a directory and an image, and an upgrade with an approval.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { busyboxLayer, directory, type Entry, writeDockerArchive } from '../../build/docker-archive.ts';
import { crdOf, csvOf, packageOf, writeCatalog } from '../openshift/operators/olm/catalogs.ts';
import { accessibilityFaults, TestBrowser, withoutBrowser } from './console/browser.ts';
import { Appliance, eventually } from './harness.ts';

const oc = process.env['HYPEREDGE_OC'] ?? '/var/tmp/hyperedge-upstream/oc';
const IMAGE = 'lab.local/operator:1';
const crd = { plural: 'webs', kind: 'Web' };
const v1 = {
  name: 'web',
  version: '1.0.0',
  image: IMAGE,
  crd,
  rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }],
  command: ['/bin/sh', '-c', 'while :; do sleep 1; done'],
};
const v2 = { ...v1, version: '2.0.0' };

let appliance: Appliance;
let scratch: string;

const apply = (...objects: object[]): Promise<string> =>
  appliance.must(['apply', '-f', '-'], { input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }) });

const olm = (kind: string, name: string, namespace: string, spec: object, version = 'v1alpha1') => ({
  apiVersion: `operators.coreos.com/${version}`,
  kind,
  metadata: { name, namespace },
  spec,
});

const read = (what: string, path: string): Promise<string> =>
  appliance.must(['get', ...what.split(' '), '-o', `jsonpath=${path}`]);

const succeeded = (name: string, namespace: string): Promise<boolean> =>
  eventually<boolean>(`${name} Succeeded`, 60_000, async () => {
    const phase = await read(`csv ${name} -n ${namespace}`, '{.status.phase} {.status.reason}: {.status.message}');
    if (!phase.startsWith('Succeeded ')) throw new Error(phase);
    return true;
  });

/** Approves the install plan of a version on the page Operators, and follows the installation there. */
async function approveInConsole(csv: string): Promise<void> {
  const browser = await TestBrowser.start(appliance);
  try {
    const { page, faults } = await browser.newTab({ viewport: { width: 360, height: 740 } });
    const { stdout } = await appliance.hyperedge(['console', '--root', appliance.root]);
    await page.goto(stdout.trim());
    await page.waitForSelector('.frame h1');
    await page.click('button:has-text("Navigation")');
    await page.click('nav a:text-is("Operators")');
    await page.click('button:text-is("Subscriptions")');
    await page.waitForSelector('tr:has-text("web") >> text=waits for the approval of its install plan');
    await page.click('button:text-is("Install plans")');
    const plan = page.locator('tr', { hasText: csv });
    await plan.locator('text=waits for approval').waitFor();
    await plan.locator('button[aria-disabled=false]:has-text("Approve install-")').click();
    assert.deepEqual(await accessibilityFaults(page), []);
    await page.click('dialog[open] button.main');
    await page.waitForSelector('.toast:has-text("The install plan is approved.")');
    await plan.locator('text=complete').waitFor();
    await plan.locator('td[data-column=Approval]:text-is("approved")').waitFor();
    await page.click('button:text-is("Installed operators")');
    await page.waitForSelector(`tr:has-text("${csv}") >> text=installed`);
    await page.click('button:text-is("Subscriptions")');
    await page.waitForSelector('tr:has-text("web") >> text=newest version installed');
    assert.deepEqual(faults, []);
  } finally {
    await browser.stop();
  }
}

const file = (name: string, content: string): Entry => ({
  name,
  type: 'file',
  mode: 0o644,
  content: Buffer.from(content),
});

/** Imports images of the operator, of a bundle with manifests, and of a catalog that refers to that bundle. */
async function importImages(): Promise<void> {
  const archive = join(scratch, 'images.tar');
  const side = {
    name: 'side',
    version: '0.1.0',
    image: IMAGE,
    command: v1.command,
    crd: { plural: 'sides', kind: 'Side' },
  };
  const catalog = packageOf('side', [side]).slice(0, 2);
  const bundle = {
    schema: 'olm.bundle',
    package: 'side',
    name: 'side.v0.1.0',
    image: 'lab.local/side-bundle:1',
    properties: [{ type: 'olm.package', value: { packageName: 'side', version: '0.1.0' } }],
  };
  await writeDockerArchive(archive, [
    { tag: IMAGE, layers: [await busyboxLayer()], config: { Cmd: ['/bin/sh'] } },
    {
      tag: 'lab.local/side-bundle:1',
      layers: [
        [
          directory('manifests/'),
          file('manifests/csv.json', JSON.stringify(csvOf(side))),
          file('manifests/crd.json', JSON.stringify(crdOf(side.crd))),
        ],
      ],
      config: {},
    },
    {
      tag: 'lab.local/catalog:1',
      layers: [
        [
          directory('configs/'),
          directory('configs/side/'),
          file('configs/side/catalog.json', [...catalog, bundle].map((each) => JSON.stringify(each)).join('\n')),
        ],
      ],
      config: { Labels: { 'operators.operatorframework.io.index.configs.v1': '/configs' } },
    },
  ]);
  const ran = await appliance.hyperedge(['image', 'import', '--root', appliance.root, archive]);
  assert.equal(ran.code, 0, ran.stderr);
}

before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'he-olm-'));
  appliance = await Appliance.create();
  const bootstrap = join(appliance.root, 'etc/origin/bootstrap.yaml');
  await mkdir(dirname(bootstrap), { recursive: true });
  await writeFile(bootstrap, 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nopenshift: {profile: okd}\n');
  await writeCatalog(join(appliance.root, 'var/lib/origin/catalogs/lab'), packageOf('web', [v1]));
  await appliance.start(180_000);
  await importImages();
  for (const name of ['openshift-marketplace', 'shop', 'sides']) await appliance.must(['create', 'namespace', name]);
});

after(async () => {
  await appliance?.stop();
  await rm(scratch, { recursive: true, force: true });
});

test('installs an operator from a directory and upgrades the operator after approval', async () => {
  await apply(
    olm('CatalogSource', 'lab', 'openshift-marketplace', {
      sourceType: 'grpc',
      address: 'file:///var/lib/origin/catalogs/lab',
      displayName: 'Lab',
      updateStrategy: { registryPoll: { interval: '1s' } },
    }),
    olm('CatalogSource', 'side', 'openshift-marketplace', { sourceType: 'grpc', image: 'lab.local/catalog:1' }),
    olm('OperatorGroup', 'shop', 'shop', { targetNamespaces: ['shop'] }, 'v1'),
    olm('OperatorGroup', 'sides', 'sides', { targetNamespaces: ['sides'] }, 'v1'),
    olm('Subscription', 'web', 'shop', {
      name: 'web',
      source: 'lab',
      sourceNamespace: 'openshift-marketplace',
      channel: 'stable',
      installPlanApproval: 'Manual',
    }),
    olm('Subscription', 'side', 'sides', { name: 'side', source: 'side', sourceNamespace: 'openshift-marketplace' }),
  );
  const approve = (csv: string): Promise<true> =>
    eventually(`plan of ${csv}`, 30_000, async () => {
      const filter = `@.spec.clusterServiceVersionNames[0]=="${csv}"`;
      const path = `{range .items[?(${filter})]}{.metadata.name} {.status.phase}{end}`;
      const [name = '', phase] = (await read('installplans -n shop', path)).split(' ');
      if (phase !== 'RequiresApproval') return undefined;
      await appliance.must([
        'patch',
        'installplan',
        name,
        '-n',
        'shop',
        '--type=merge',
        '-p',
        '{"spec":{"approved":true}}',
      ]);
      return true;
    });
  await approve('web.v1.0.0');
  await succeeded('web.v1.0.0', 'shop');
  await succeeded('side.v0.1.0', 'sides');
  assert.equal(await read('deployment web -n shop', '{.status.availableReplicas}'), '1');
  await apply({ apiVersion: 'lab.example/v1', kind: 'Web', metadata: { name: 'w', namespace: 'shop' } });

  await writeCatalog(join(appliance.root, 'var/lib/origin/catalogs/lab'), packageOf('web', [v1, v2]));
  if (withoutBrowser() === undefined) await approveInConsole('web.v2.0.0');
  else await approve('web.v2.0.0');
  await succeeded('web.v2.0.0', 'shop');
  await eventually('the old version to be deleted', 20_000, async () =>
    (await appliance.kubectl(['get', 'csv', 'web.v1.0.0', '-n', 'shop'])).code === 0 ? undefined : true,
  );
  assert.match(await read('pods -n shop -l name=web', '{.items[*].status.phase}'), /Running/);
});

test('serves versions, plans, packages, subscriptions and catalogs of operators to clients', async () => {
  const path = existsSync(oc) ? oc : undefined;
  const get = (what: string, ...more: string[]) =>
    appliance.must(['get', what, ...more], path === undefined ? {} : { path });
  const [csv, plans] = [await get('csv', '-n', 'shop'), await get('installplan', '-n', 'shop')];
  assert.match(
    csv,
    /^NAME +DISPLAY +VERSION +REPLACES +PHASE\nweb\.v2\.0\.0 +Operator web +2\.0\.0 +web\.v1\.0\.0 +Succeeded$/m,
  );
  assert.match(plans, /^NAME +CSV +APPROVAL +APPROVED\n/);
  assert.match(plans, /^install-\w+ +web\.v2\.0\.0 +Manual +true$/m);
  assert.match(await get('packagemanifest', '-n', 'shop'), /^web +Lab +\S+$/m);
  assert.match(await get('sub', '-n', 'shop'), /^web +web +lab +stable$/m);
  assert.match(await get('catsrc', '-A'), /^openshift-marketplace +lab +Lab +grpc +\S*/m);
  assert.match(await get('og', '-n', 'shop'), /^shop +\S+$/m);
  const manifest = await get(
    'packagemanifest',
    'side',
    '-n',
    'sides',
    '-o',
    'jsonpath={.status.channels[0].currentCSV}',
  );
  assert.equal(manifest, 'side.v0.1.0');
  const several = await get('csv,ip,packagemanifest', '-n', 'shop');
  assert.match(several, /installplan\.operators\.coreos\.com\/install-/);
  assert.match(several, /clusterserviceversion\.operators\.coreos\.com\/web\.v2\.0\.0/);
});

test('serves the catalogs of one master to other masters by digest', async () => {
  const node = ['--as=system:node:x', '--as-group=system:nodes', '--as-group=system:authenticated'];
  // The report is updated shortly after an edit.
  const { path, digest, served } = await eventually('a served copy', 90_000, async () => {
    const { items } = JSON.parse(await appliance.must(['get', 'nodes', '-o', 'json']));
    const { lab = '' } = JSON.parse(items[0].metadata.annotations['hyperedge.dev/catalogs'] ?? '{}');
    const path = `/hyperedge/catalogs/sha256/${lab.slice('sha256:'.length)}`;
    const { code, stdout } = await appliance.kubectl(['get', '--raw', path, ...node]);
    return code === 0 ? { path, digest: lab, served: stdout } : undefined;
  });
  assert.equal(`sha256:${createHash('sha256').update(served).digest('hex')}`, digest);
  assert.match((await appliance.kubectl(['get', '--raw', path, '--as=bob'])).stderr, /[Ff]orbidden/);
});

test('a project administrator can subscribe to operators, but only within the operator group', async () => {
  await appliance.must(['create', 'rolebinding', 'dev', '-n', 'shop', '--clusterrole=admin', '--user=dev']);
  const can = async (...args: string[]): Promise<string> =>
    (
      await appliance.kubectl(['auth', 'can-i', ...args, '-n', 'shop', '--as=dev', '--as-group=system:authenticated'])
    ).stdout.trim();
  assert.equal(await can('create', 'subscriptions.operators.coreos.com'), 'yes');
  assert.equal(await can('list', 'packagemanifests.packages.operators.coreos.com'), 'yes');
  assert.equal(await can('patch', 'installplans.operators.coreos.com'), 'no');
  assert.equal(await can('create', 'operatorgroups.operators.coreos.com'), 'no');
  assert.equal(await can('create', 'catalogsources.operators.coreos.com'), 'no');
  assert.equal(await can('create', 'clusterserviceversions.operators.coreos.com'), 'no');

  await appliance.must(['delete', 'subscription', 'web', '-n', 'shop']);
  await appliance.must(['delete', 'csv', 'web.v2.0.0', '-n', 'shop', '--timeout=30s']);
  await eventually('the deployment to be deleted', 20_000, async () =>
    (await appliance.kubectl(['get', 'deployment', 'web', '-n', 'shop'])).code === 0 ? undefined : true,
  );
  // Custom resources and their definitions remain, because they are data.
  await appliance.must(['get', 'webs', 'w', '-n', 'shop']);
});
