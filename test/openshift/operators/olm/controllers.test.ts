/** Operator lifecycle manager on a real API server. Pods are simulated. */
import assert from 'node:assert/strict';
import { randomBytes, X509Certificate } from 'node:crypto';
import { mkdir, mkdtemp, open, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { PolicyRule } from '../../../../src/api/generated/rbac/v1.ts';
import { resources } from '../../../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../../controllers/harness.ts';
import { bundleOf, crdOf, csvOf, packageOf, writeCatalog } from './catalogs.ts';

const POLL = { registryPoll: { interval: '1s' } };

describe('operator lifecycle manager', () => {
  let plane: ControlPlane;
  let catalogs: string;

  before(async () => {
    catalogs = await mkdtemp(join(tmpdir(), 'he-olm-'));
    plane = await startControlPlane({
      catalogs,
      router: true,
      // No kubelet renews the node's lease.
      controllers: { nodeMonitorGracePeriodMs: 3_600_000, nodeStartupGracePeriodMs: 3_600_000 },
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

  it('installs the newest version of a channel, and upgrades after a manual approval', async () => {
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
    assert.deepEqual(
      csv.status?.conditions?.map(({ phase, reason }) => `${phase} ${reason}`).filter((each) => !/Waiting/.test(each)),
      [
        'Pending RequirementsUnknown',
        ...(csv.status?.conditions?.some(({ reason }) => reason === 'RequirementsNotMet')
          ? ['Pending RequirementsNotMet']
          : []),
        'InstallReady AllRequirementsMet',
        'Installing InstallSucceeded',
        'Succeeded InstallSucceeded',
      ],
    );
    const deployment = await plane.of(resources.deployments).get('web', 'shop');
    assert.equal(deployment.metadata?.ownerReferences?.[0]?.uid, csv.metadata?.uid);
    const { annotations } = deployment.spec?.template.metadata ?? {};
    assert.deepEqual(
      [annotations?.['olm.targetNamespaces'], annotations?.['olm.operatorGroup'], annotations?.['alm-examples']],
      ['shop', 'group', undefined],
    );
    assert.deepEqual(deployment.spec?.template.spec?.containers[0]?.env, [
      { name: 'OPERATOR_CONDITION_NAME', value: 'web.v1.0.0' },
    ]);
    await eventually(async () => {
      const { status } = await plane.of(resources.subscriptions).get('web', 'shop');
      assert.deepEqual([status?.state, status?.installedCSV], ['AtLatestKnown', 'web.v1.0.0']);
      assert.equal(status?.catalogHealth?.[0]?.healthy, true);
      const group = await plane.of(resources.operatorGroups).get('group', 'shop');
      assert.equal(group.metadata?.annotations?.['olm.providedAPIs'], 'Web.v1.lab.example');
      const { status: shown } = await plane.of(resources.operators).get('web.shop');
      assert.deepEqual(
        shown?.components?.refs?.map(({ kind }) => kind),
        ['ClusterServiceVersion', 'InstallPlan', 'Subscription'],
      );
      return true;
    }, 'status of the subscription');

    const v2 = { ...v1, version: '2.0.0' };
    await plane.of(resources.subscriptions).patch('web', 'shop', 'merge', { spec: { installPlanApproval: 'Manual' } });
    await writeCatalog(join(catalogs, 'lab'), packageOf('web', [v1, v2]));
    const plan = await eventually(
      async () => {
        const { status } = await plane.of(resources.subscriptions).get('web', 'shop');
        assert.deepEqual([status?.state, status?.currentCSV], ['UpgradePending', 'web.v2.0.0']);
        const found = await plane.of(resources.installPlans).get(status?.installPlanRef?.name ?? '', 'shop');
        assert.equal(found.status?.phase, 'RequiresApproval');
        assert.deepEqual(
          status?.conditions?.find(({ type }) => type === 'InstallPlanPending')?.reason,
          'RequiresApproval',
        );
        return found;
      },
      'a plan that waits',
      15_000,
    );
    assert.equal(
      (await plane.of(resources.clusterServiceVersions).get('web.v1.0.0', 'shop')).status?.phase,
      'Succeeded',
    );
    await plane
      .of(resources.installPlans)
      .patch(plan.metadata?.name ?? '', 'shop', 'merge', { spec: { approved: true } });
    await phaseOf('web.v2.0.0', 'shop', 'Succeeded');
    await eventually(
      async () => {
        const left = await plane.of(resources.clusterServiceVersions).list({ namespace: 'shop' });
        assert.deepEqual(
          left.items.map(({ metadata }) => metadata?.name),
          ['web.v2.0.0'],
        );
        const { metadata } = await plane.of(resources.deployments).get('web', 'shop');
        assert.deepEqual(
          metadata?.ownerReferences?.map(({ name }) => name),
          ['web.v2.0.0'],
        );
        const roles = await plane.of(resources.roles).list({ namespace: 'shop', labelSelector: 'olm.owner' });
        assert.ok(roles.items.every((each) => each.metadata?.labels?.['olm.owner'] === 'web.v2.0.0'));
        return true;
      },
      'the old version to go',
      15_000,
    );
    const { status } = await plane.of(resources.installPlans).get(plan.metadata?.name ?? '', 'shop');
    assert.equal(status?.phase, 'Complete');
    assert.ok(status.plan?.every((each) => ['Created', 'Present'].includes(each.status)));
  });

  it('reports masters whose copies of a catalog differ', async () => {
    const condition = async () => {
      const { status } = await plane.of(resources.catalogSources).get('lab', 'openshift-marketplace');
      return status?.conditions?.find(({ type }) => type === 'CopiesEqual');
    };
    const report = (node: string, catalogs: object) =>
      plane.of(resources.nodes).patch(node, undefined, 'merge', {
        metadata: {
          labels: { 'node-role.kubernetes.io/master': node === 'n1' ? '' : null },
          annotations: { 'hyperedge.dev/catalogs': JSON.stringify(catalogs) },
        },
      });
    const equal = await eventually(condition, 'a condition');
    assert.equal(equal.status, 'True');
    const digest = /^content (sha256:[0-9a-f]{64})$/.exec(equal.message)?.[1] ?? '';
    await report('n1', { lab: `sha256:${'0'.repeat(64)}` });
    await eventually(async () => (await condition())?.status === 'False', 'a difference');
    const found = await condition();
    assert.equal(found?.reason, 'CopiesDiffer');
    assert.match(found?.message ?? '', /^content sha256:.* is offered; the other masters take sha256:000000000000$/);
    await report('n1', { lab: digest });
    await eventually(async () => (await condition())?.status === 'True', 'equal copies');
  });

  it('lists PackageManifests in every namespace, also for users with the role view', async () => {
    const shown = async (at: string, name = '') =>
      plane.admin.request<{ items?: { metadata: object }[]; status?: { channels: { currentCSV: string }[] } }>(
        'GET',
        `/apis/packages.operators.coreos.com/v1/namespaces/${at}/packagemanifests${name}`,
      );
    const web = await shown('default', '/web');
    assert.equal(web.status?.channels[0]?.currentCSV, 'web.v2.0.0');
    assert.equal((await shown('default')).items?.length, 1);
    await assert.rejects(shown('default', '/none'), /packagemanifests.packages.operators.coreos.com "none" not found/);
  });

  it('installs required operators from the catalog with the higher priority', async () => {
    const crd = { plural: 'dbs', kind: 'Db' };
    const db = { name: 'db', version: '3.1.0', crd };
    const app = {
      name: 'app',
      version: '1.0.0',
      properties: [
        { type: 'olm.gvk.required', value: { group: 'lab.example', version: 'v1', kind: 'Db' } },
        { type: 'olm.package.required', value: { packageName: 'db', versionRange: '>=3.0.0 <4.0.0' } },
      ],
    };
    await writeCatalog(join(catalogs, 'apps'), packageOf('app', [app]));
    await writeCatalog(join(catalogs, 'low'), packageOf('db', [db]));
    await writeCatalog(join(catalogs, 'high'), packageOf('db', [{ ...db, version: '3.2.0' }]));
    await Promise.all(['apps', 'low', 'high'].map(catalog));
    await plane.of(resources.catalogSources).patch('high', 'openshift-marketplace', 'merge', { spec: { priority: 5 } });
    await eventually(async () => {
      const all = await plane.of(resources.catalogSources).list({ namespace: 'openshift-marketplace' });
      assert.ok(all.items.every(({ status }) => status?.connectionState?.lastObservedState === 'READY'));
      return true;
    }, 'catalogs');
    await namespace('apps');
    await subscribe('app', 'apps', 'apps');
    await phaseOf('app.v1.0.0', 'apps', 'Succeeded');
    await phaseOf('db.v3.2.0', 'apps', 'Succeeded');
    const made = await plane.of(resources.subscriptions).get('db-stable-high-openshift-marketplace', 'apps');
    assert.equal(made.spec?.startingCSV, 'db.v3.2.0');
    await eventually(async () => {
      const { status } = await plane.of(resources.subscriptions).get('db-stable-high-openshift-marketplace', 'apps');
      return status?.installedCSV === 'db.v3.2.0';
    }, 'the subscription of the dependency');
  });

  it('selects a dependency by a CEL constraint, and compresses a large InstallPlan', async () => {
    const storage = (name: string, value: string) => ({
      name,
      version: '1.0.0',
      properties: [{ type: 'storage', value }],
      // Hexadecimal digits, which compression reduces by half.
      description: randomBytes(320_000).toString('hex'),
    });
    const rule = `properties.exists(p, p.type == "storage" && p.value == "fast") &&
      properties.exists(p, p.type == "olm.package" && semver_compare(p.value.version, "1.0.0") >= 0)`;
    const constraint = { failureMessage: 'fast storage', all: { constraints: [{ cel: { rule } }] } };
    const app = {
      name: 'choosy',
      version: '1.0.0',
      properties: [
        { type: 'olm.constraint', value: constraint },
        { type: 'olm.package.required', value: { packageName: 'plain', versionRange: '>=1.0.0' } },
      ],
    };
    const slow = storage('slow', 'slow');
    await writeCatalog(join(catalogs, 'choosy'), [
      ...packageOf('choosy', [app]),
      ...packageOf('slow', [slow]),
      ...packageOf('plain', [{ ...slow, name: 'plain' }]),
      ...packageOf('quick', [storage('quick', 'fast')]),
    ]);
    await catalog('choosy');
    await namespace('choosy');
    await subscribe('choosy', 'choosy', 'choosy');
    await Promise.all(['choosy', 'quick', 'plain'].map((name) => phaseOf(`${name}.v1.0.0`, 'choosy', 'Succeeded')));
    const { items } = await plane.of(resources.clusterServiceVersions).list({ namespace: 'choosy' });
    assert.equal(items.length, 3);
    const [plan] = (await plane.of(resources.installPlans).list({ namespace: 'choosy' })).items;
    const manifests = plan?.status?.plan?.map(({ resource }) => resource.manifest ?? '') ?? [];
    assert.equal(manifests.filter((each) => each.startsWith('{"hyperedge.dev/gzip":')).length, 2);
    const quick = items.find(({ metadata }) => metadata?.name === 'quick.v1.0.0');
    assert.ok(JSON.stringify(quick).length > 640_000);
  });

  it('reports why a subscription cannot be resolved', async () => {
    await namespace('unresolved');
    const app = {
      name: 'lonely',
      version: '1.0.0',
      properties: [{ type: 'olm.package.required', value: { packageName: 'none', versionRange: '>1.0.0' } }],
    };
    await writeCatalog(join(catalogs, 'lonely'), packageOf('lonely', [app]));
    await catalog('lonely');
    await subscribe('lonely', 'unresolved', 'lonely');
    await eventually(async () => {
      const { status } = await plane.of(resources.subscriptions).get('lonely', 'unresolved');
      const failed = status?.conditions?.find(({ type }) => type === 'ResolutionFailed');
      assert.equal(failed?.reason, 'ConstraintsNotSatisfiable');
      assert.match(failed?.message ?? '', /requires an operator with package: none and with version in range: >1.0.0/);
      return true;
    }, 'condition');
  });

  const everything = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];

  it("installs an operator only with the permissions of the OperatorGroup's service account", async () => {
    const greedy = { name: 'greedy', version: '1.0.0', clusterRules: everything };
    await writeCatalog(join(catalogs, 'greedy'), packageOf('greedy', [greedy]));
    await catalog('greedy');
    await namespace('limited', ['limited'], 'installer');
    await plane.of(resources.serviceAccounts).create({ metadata: { name: 'installer', namespace: 'limited' } });
    await plane.of(resources.clusterRoles).create({
      metadata: { name: 'installer' },
      rules: [
        { apiGroups: ['operators.coreos.com'], resources: ['*'], verbs: ['*'] },
        {
          apiGroups: ['', 'apps', 'rbac.authorization.k8s.io'],
          resources: ['*'],
          verbs: ['get', 'create', 'update', 'patch', 'delete'],
        },
      ],
    });
    await plane.of(resources.clusterRoleBindings).create({
      metadata: { name: 'installer' },
      subjects: [{ kind: 'ServiceAccount', name: 'installer', namespace: 'limited' }],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'installer' },
    });
    await subscribe('greedy', 'limited', 'greedy');
    const plan = await eventually(
      async () => {
        const [found] = (await plane.of(resources.installPlans).list({ namespace: 'limited' })).items;
        assert.equal(found?.status?.phase, 'Failed', JSON.stringify(found?.status?.message));
        return found;
      },
      'a failed plan',
      15_000,
    );
    assert.match(plan.status?.message ?? '', /attempting to grant RBAC permissions not currently held/);
    assert.equal(plan.status?.attenuatedServiceAccountRef?.name, 'installer');
    const roles = await plane.of(resources.clusterRoles).list({ labelSelector: 'olm.owner=greedy.v1.0.0' });
    assert.equal(roles.items.length, 0);
    await eventually(async () => {
      const { status } = await plane.of(resources.subscriptions).get('greedy', 'limited');
      return status?.conditions?.some(({ type, status: value }) => type === 'InstallPlanFailed' && value === 'True');
    }, 'condition of the subscription');

    await namespace('unlimited');
    await subscribe('greedy', 'unlimited', 'greedy');
    await phaseOf('greedy.v1.0.0', 'unlimited', 'Succeeded');
    await eventually(async () => {
      const { items } = await plane.of(resources.events).list({ namespace: 'unlimited' });
      return items.some(
        ({ reason, message }) => reason === 'ClusterAdminGranted' && /all permissions/.test(message ?? ''),
      );
    }, 'an event');
  });

  const limitedInstaller = async (at: string, rules: PolicyRule[]) => {
    await plane.of(resources.serviceAccounts).create({ metadata: { name: 'installer', namespace: at } });
    const name = `installer-${at}`;
    const base = [
      { apiGroups: ['operators.coreos.com'], resources: ['*'], verbs: ['*'] },
      { apiGroups: ['', 'apps'], resources: ['*'], verbs: ['get', 'create', 'update', 'patch', 'delete'] },
    ];
    await plane.of(resources.clusterRoles).create({ metadata: { name }, rules: [...base, ...rules] });
    await plane.of(resources.clusterRoleBindings).create({
      metadata: { name },
      subjects: [{ kind: 'ServiceAccount', name: 'installer', namespace: at }],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    });
  };
  const aggregated = async (group: string) =>
    (await plane.of(resources.clusterRoles).list({ labelSelector: 'olm.managed=true' })).items.filter(({ rules }) =>
      rules?.some(({ apiGroups }) => apiGroups?.includes(group)),
    );

  it('rejects CustomResourceDefinitions and APIServices in API groups that the API server itself serves', async () => {
    const group = 'security.openshift.io';
    const crd = { plural: 'securitycontextconstraints', kind: 'SecurityContextConstraints', group };
    const seize = { name: 'seize', version: '1.0.0', crd };
    const shadow = {
      name: 'shadow',
      version: '1.0.0',
      apis: [{ group: 'apps', version: 'v9', kind: 'Thing', name: 'things', deploymentName: 'shadow' }],
    };
    await writeCatalog(join(catalogs, 'seize'), [...packageOf('seize', [seize]), ...packageOf('shadow', [shadow])]);
    await catalog('seize');
    await namespace('seized', ['seized'], 'installer');
    await limitedInstaller('seized', []);
    await subscribe('seize', 'seized', 'seize');
    const plan = await eventually(
      async () => {
        const [found] = (await plane.of(resources.installPlans).list({ namespace: 'seized' })).items;
        assert.equal(found?.status?.phase, 'Failed', JSON.stringify(found?.status?.message));
        return found;
      },
      'a failed plan',
      15_000,
    );
    assert.match(plan.status?.message ?? '', /securitycontextconstraints\.security\.openshift\.io" is in a group that/);
    // A version that is created directly is also rejected.
    await plane.of(resources.clusterServiceVersions).patch('seize.v1.0.0', 'seized', 'merge', {
      spec: { customresourcedefinitions: { owned: [{ name: 'secrets', version: 'v1', kind: 'Secret' }] } },
    });
    assert.deepEqual(await aggregated(group), []);
    assert.deepEqual(await aggregated(''), []);
    await namespace('shadowed');
    await subscribe('shadow', 'shadowed', 'seize');
    const failed = await phaseOf('shadow.v1.0.0', 'shadowed', 'Failed');
    assert.match(failed.status?.message ?? '', /"v9\.apps" has no valid API group|in a group that the API server/);
  });

  it('creates aggregated roles, webhooks and foreign conversions only with permissions of the installing service account', async () => {
    const foreign = crdOf({ plural: 'ledgers', kind: 'Ledger' });
    await plane.admin.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', foreign);
    const conversion = {
      type: 'ConversionWebhook',
      generateName: 'ledgers.lab.example',
      deploymentName: 'taker',
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      conversionCRDs: ['ledgers.lab.example'],
    };
    const taker = {
      name: 'taker',
      version: '1.0.0',
      crd: { plural: 'ledgers', kind: 'Ledger', versions: ['v1', 'v2'] },
      webhooks: [conversion],
    };
    const own = { name: 'modest', version: '1.0.0', crd: { plural: 'modests', kind: 'Modest' } };
    await writeCatalog(join(catalogs, 'taker'), [...packageOf('taker', [taker]), ...packageOf('modest', [own])]);
    await catalog('taker');
    await namespace('takers', ['takers'], 'installer');
    await limitedInstaller('takers', []);
    await subscribe('taker', 'takers', 'taker');
    const failed = await phaseOf('taker.v1.0.0', 'takers', 'Failed');
    assert.match(failed.status?.message ?? '', /customresourcedefinitions.*is forbidden|cannot update resource/);
    const { spec } = await plane.of(resources.customResourceDefinitions).get('ledgers.lab.example');
    assert.deepEqual([spec?.conversion?.strategy, spec?.versions.length], ['None', 1]);
    await namespace('modest', ['modest'], 'installer');
    await limitedInstaller('modest', [
      { apiGroups: ['rbac.authorization.k8s.io'], resources: ['*'], verbs: ['get', 'create', 'update'] },
    ]);
    await subscribe('modest', 'modest', 'taker');
    await phaseOf('modest.v1.0.0', 'modest', 'Succeeded');
    const names = (await plane.of(resources.clusterRoles).list()).items.map(({ metadata }) => metadata?.name ?? '');
    assert.deepEqual(
      names.filter((each) => /^(modests|ledgers)\./.test(each)),
      [],
    );
    await eventually(async () => {
      const { items } = await plane.of(resources.events).list({ namespace: 'modest' });
      return items.some(({ reason }) => reason === 'AggregatedRolesRefused');
    }, 'an event');
  });

  it('serves webhooks of an operator with generated certificates, and removes them with the ClusterServiceVersion', async () => {
    const webhook = (type: string, more: object) => ({
      type,
      generateName: `${type.toLowerCase().slice(0, 8)}.lab.example`,
      deploymentName: 'hook',
      containerPort: 443,
      targetPort: 9443,
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      failurePolicy: 'Ignore',
      ...more,
    });
    const rules = [{ apiGroups: ['lab.example'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['hooks'] }];
    const hook = {
      name: 'hook',
      version: '1.0.0',
      crd: { plural: 'hooks', kind: 'Hook', versions: ['v1', 'v1beta1'] },
      rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
      webhooks: [
        webhook('ValidatingAdmissionWebhook', { rules, webhookPath: '/validate' }),
        webhook('MutatingAdmissionWebhook', { rules }),
        webhook('ConversionWebhook', { conversionCRDs: ['hooks.lab.example', 'customresourcedefinitions.example'] }),
      ],
    };
    await writeCatalog(join(catalogs, 'hook'), packageOf('hook', [hook]));
    await catalog('hook');
    await namespace('hooks');
    await plane.of(resources.namespaces).create({ metadata: { name: 'watched' } });
    await plane
      .of(resources.operatorGroups)
      .patch('group', 'hooks', 'merge', { spec: { targetNamespaces: ['watched'] } });
    await subscribe('hook', 'hooks', 'hook');
    const csv = await phaseOf('hook.v1.0.0', 'hooks', 'Succeeded');
    const secret = await plane.of(resources.secrets).get('hook-service-cert', 'hooks');
    const certificate = new X509Certificate(Buffer.from(secret.data?.['tls.crt'] ?? '', 'base64'));
    assert.ok(certificate.checkHost('hook-service.hooks.svc'));
    const { spec } = await plane.of(resources.deployments).get('hook', 'hooks');
    assert.deepEqual(
      spec?.template.spec?.containers[0]?.volumeMounts?.map(({ mountPath }) => mountPath),
      ['/apiserver.local.config/certificates', '/tmp/k8s-webhook-server/serving-certs'],
    );
    const list = async (plural: string) =>
      (
        await plane.admin.request<{
          items: {
            webhooks: {
              namespaceSelector?: unknown;
              rules: { scope?: string }[];
              clientConfig: { service: unknown };
            }[];
          }[];
        }>('GET', `/apis/admissionregistration.k8s.io/v1/${plural}?labelSelector=olm.owner%3Dhook.v1.0.0`)
      ).items;
    const [validating] = await list('validatingwebhookconfigurations');
    assert.deepEqual(validating?.webhooks[0]?.clientConfig.service, {
      name: 'hook-service',
      namespace: 'hooks',
      path: '/validate',
      port: 443,
    });
    assert.deepEqual(validating.webhooks[0].namespaceSelector, {
      matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['watched'] }],
    });
    // A namespace selector does not exclude cluster-scoped objects.
    assert.deepEqual(
      validating.webhooks[0].rules.map(({ scope }) => scope),
      ['Namespaced'],
    );
    assert.equal((await list('mutatingwebhookconfigurations')).length, 1);
    const conversion = async () =>
      (await plane.of(resources.customResourceDefinitions).get('hooks.lab.example')).spec?.conversion?.strategy;
    assert.equal(await conversion(), 'Webhook');
    // Users of the watched namespace see a copy, and the operator has its role there.
    const copy = await phaseOf('hook.v1.0.0', 'watched', 'Succeeded');
    assert.equal(copy.status?.reason, 'Copied');
    const roles = await plane
      .of(resources.roles)
      .list({ namespace: 'watched', labelSelector: 'olm.owner=hook.v1.0.0' });
    assert.deepEqual(roles.items[0]?.rules, hook.rules);

    await plane.of(resources.subscriptions).delete('hook', 'hooks');
    await plane.of(resources.clusterServiceVersions).delete('hook.v1.0.0', 'hooks');
    await eventually(
      async () => {
        assert.equal((await list('validatingwebhookconfigurations')).length, 0);
        assert.equal(await conversion(), 'None');
        const left = await plane.of(resources.clusterServiceVersions).list({ labelSelector: 'olm.copiedFrom=hooks' });
        assert.equal(left.items.length, 0);
        const kept = await plane
          .of(resources.roles)
          .list({ namespace: 'watched', labelSelector: 'olm.owner=hook.v1.0.0' });
        assert.equal(kept.items.length, 0);
        const deployments = await plane.of(resources.deployments).list({ namespace: 'hooks' });
        assert.equal(deployments.items.length, 0);
        return true;
      },
      'everything to go',
      15_000,
    );
    assert.equal(csv.metadata?.finalizers?.[0], 'operators.coreos.com/csv-cleanup');
  });

  it('does not replace an operator whose OperatorCondition reports Upgradeable=False', async () => {
    const v1 = { name: 'busy', version: '1.0.0' };
    await writeCatalog(join(catalogs, 'busy'), packageOf('busy', [v1]));
    await catalog('busy');
    await namespace('busy');
    await subscribe('busy', 'busy', 'busy');
    await phaseOf('busy.v1.0.0', 'busy', 'Succeeded');
    const condition = {
      type: 'Upgradeable',
      status: 'False',
      reason: 'Migrating',
      message: 'wait for the migration',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    const conditions = plane.of(resources.operatorConditions);
    await conditions.patch('busy.v1.0.0', 'busy', 'merge', { spec: { conditions: [condition] } });
    await writeCatalog(join(catalogs, 'busy'), packageOf('busy', [v1, { ...v1, version: '1.1.0' }]));
    await eventually(
      async () => {
        const { status } = await plane.of(resources.clusterServiceVersions).get('busy.v1.1.0', 'busy');
        assert.equal(status?.reason, 'OperatorConditionNotUpgradeable');
        assert.match(status?.message ?? '', /wait for the migration/);
        return true;
      },
      'a version that waits',
      15_000,
    );
    await conditions.patch('busy.v1.0.0', 'busy', 'merge', { spec: { overrides: [{ ...condition, status: 'True' }] } });
    await phaseOf('busy.v1.1.0', 'busy', 'Succeeded');
  });

  it('checks the install modes of an operator against its OperatorGroup before the installation', async () => {
    const only = { name: 'only', version: '1.0.0', modes: ['OwnNamespace'] };
    await writeCatalog(join(catalogs, 'only'), packageOf('only', [only]));
    await catalog('only');
    await namespace('whole', []);
    await subscribe('only', 'whole', 'only');
    const failed = await phaseOf('only.v1.0.0', 'whole', 'Failed');
    assert.equal(failed.status?.reason, 'UnsupportedOperatorGroup');
    assert.match(
      failed.status.message ?? '',
      /AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces/,
    );
    const groups = plane.of(resources.operatorGroups);
    await groups.create({ metadata: { name: 'second', namespace: 'whole' }, spec: { targetNamespaces: ['whole'] } });
    await eventually(async () => {
      const { status } = await plane.of(resources.clusterServiceVersions).get('only.v1.0.0', 'whole');
      return status?.reason === 'TooManyOperatorGroups';
    }, 'too many groups');
    await groups.delete('group', 'whole');
    await phaseOf('only.v1.0.0', 'whole', 'Succeeded');
  });

  it('reads a catalog from a ConfigMap and updates it when the ConfigMap changes', async () => {
    await namespace('maps');
    const old = { name: 'old', version: '0.1.0', crd: { plural: 'olds', kind: 'Old' } };
    const data = (versions: readonly object[]) => ({
      packages: JSON.stringify([{ packageName: 'old', channels: [{ name: 'alpha', currentCSV: 'old.v0.1.0' }] }]),
      clusterServiceVersions: JSON.stringify(versions),
      customResourceDefinitions: JSON.stringify([crdOf(old.crd)]),
    });
    await plane
      .of(resources.configMaps)
      .create({ metadata: { name: 'olds', namespace: 'maps' }, data: data([csvOf(old)]) });
    await plane.of(resources.catalogSources).create({
      metadata: { name: 'own', namespace: 'maps' },
      spec: { sourceType: 'internal', configMap: 'olds', updateStrategy: POLL },
    });
    await plane.of(resources.subscriptions).create({
      metadata: { name: 'old', namespace: 'maps' },
      spec: { name: 'old', source: 'own', sourceNamespace: 'maps', config: { env: [{ name: 'A', value: 'b' }] } },
    });
    await phaseOf('old.v0.1.0', 'maps', 'Succeeded');
    const { spec } = await plane.of(resources.deployments).get('old', 'maps');
    assert.deepEqual(
      spec?.template.spec?.containers[0]?.env?.map(({ name }) => name),
      ['A', 'OPERATOR_CONDITION_NAME'],
    );
    // The catalog of a namespace serves only that namespace.
    await assert.rejects(
      plane.admin.request('GET', '/apis/packages.operators.coreos.com/v1/namespaces/shop/packagemanifests/old'),
      /not found/,
    );
    await plane.of(resources.configMaps).delete('olds', 'maps');
    await eventually(
      async () => {
        const { status } = await plane.of(resources.catalogSources).get('own', 'maps');
        assert.equal(status?.connectionState?.lastObservedState, 'TRANSIENT_FAILURE');
        assert.match(status.message ?? '', /configmap maps\/olds not found/);
        return true;
      },
      'a catalog that is lost',
      15_000,
    );
  });

  it('rejects a hostile operator catalog without affecting other catalogs', async () => {
    const states = async (name: string, address: string, expected: RegExp) => {
      await plane.of(resources.catalogSources).create({
        metadata: { name, namespace: 'openshift-marketplace' },
        spec: { sourceType: 'grpc', ...(address.startsWith('image:') ? { image: address.slice(6) } : { address }) },
      });
      await eventually(async () => {
        const { status } = await plane.of(resources.catalogSources).get(name, 'openshift-marketplace');
        assert.match(status?.message ?? 'none', expected);
        return true;
      }, name);
    };
    await mkdir(join(catalogs, 'giant'));
    const giant = await open(join(catalogs, 'giant', 'catalog.json'), 'w');
    await giant.truncate(2 ** 30);
    await giant.close();
    await mkdir(join(catalogs, 'bomb'));
    await writeFile(
      join(catalogs, 'bomb', 'c.yaml'),
      `a: &a [x]\n${Array.from({ length: 30 }, (_, at) => `k${at}: &k${at} [*${at === 0 ? 'a' : `k${at - 1}`}, *${at === 0 ? 'a' : `k${at - 1}`}]`).join('\n')}`,
    );
    await mkdir(join(catalogs, 'linked'));
    await symlink('/etc/passwd', join(catalogs, 'linked', 'c.json'));
    await mkdir(join(catalogs, 'deep'));
    await writeFile(join(catalogs, 'deep', 'c.json'), `${'{"a":'.repeat(200_000)}1${'}'.repeat(200_000)}`);
    await symlink('/etc', join(catalogs, 'away'));
    await mkdir(join(catalogs, 'kind'));
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } };
    const evil = { name: 'evil', version: '1.0.0' };
    const bundle = bundleOf({
      ...evil,
      properties: [{ type: 'olm.bundle.object', value: { data: Buffer.from(JSON.stringify(pod)).toString('base64') } }],
    });
    await writeCatalog(join(catalogs, 'kind'), [...packageOf('evil', [evil]).slice(0, 2), bundle]);
    await states('up', `file://${catalogs}/../../etc`, /is not below/);
    await states('root', 'file:///', /is not below/);
    await states('remote', 'registry.example:50051', /is served by no catalog of this host/);
    await states('giant', join(catalogs, 'giant'), /catalog is larger than 256 MiB/);
    await states('bomb', join(catalogs, 'bomb'), /alias/i);
    await states('linked', join(catalogs, 'linked'), /has no catalog/);
    await states('away', join(catalogs, 'away'), /has no catalog/);
    await states('deep', join(catalogs, 'deep'), /a document has no schema/);
    await states('absent', 'image:lab.local/none:1', /is not in the store of this host/);
    await catalog('kind');
    await namespace('evil');
    await subscribe('evil', 'evil', 'kind');
    await eventually(async () => {
      const { status } = await plane.of(resources.subscriptions).get('evil', 'evil');
      const failed = status?.conditions?.find(({ type }) => type === 'ResolutionFailed');
      assert.match(failed?.message ?? '', /Pod p has a kind that bundles must not contain/);
      return true;
    }, 'a bundle that is refused');
    assert.equal(
      (await plane.of(resources.clusterServiceVersions).get('web.v2.0.0', 'shop')).status?.phase,
      'Succeeded',
    );
  });
});
