/** Security context constraints in both profiles: permissions, forged annotations, removed constraints, reviews. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { KeyPair } from '../../../../src/pki/certificate.ts';
import { type Answer, startServer, type TestServer } from '../../harness.ts';

interface Body {
  readonly message?: string;
  readonly metadata?: { readonly annotations?: Record<string, string>; readonly resourceVersion?: string };
  readonly spec?: {
    readonly securityContext?: Record<string, unknown>;
    readonly containers: readonly { readonly securityContext?: Record<string, unknown> }[];
    readonly ephemeralContainers?: readonly { readonly securityContext?: Record<string, unknown> }[];
  };
  readonly status?: Record<string, unknown>;
  readonly items?: readonly { readonly metadata: { readonly name: string } }[];
}

const SCC = 'openshift.io/scc';
const SECURITY = '/apis/security.openshift.io/v1';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const MIN = 1_000_660_000;
const ALLOCATED = {
  'openshift.io/sa.scc.uid-range': `${MIN}/10000`,
  'openshift.io/sa.scc.supplemental-groups': `${MIN}/10000`,
  'openshift.io/sa.scc.mcs': 's0:c26,c5',
};
const container = (securityContext?: object) => ({
  name: 'c',
  image: 'i',
  ...(securityContext === undefined ? {} : { securityContext }),
});
const plain = { containers: [container()] };
const privileged = { containers: [container({ privileged: true })] };
const root = { containers: [container({ runAsUser: 0 })] };

class Cluster {
  readonly server: TestServer;
  readonly dev: KeyPair;
  private constructor(server: TestServer, dev: KeyPair) {
    this.server = server;
    this.dev = dev;
  }
  static async start(profile: 'kubernetes' | 'okd'): Promise<Cluster> {
    const server = await startServer({ config: { openshift: { profile, domain: 'apps.lab' } } });
    return new Cluster(server, await server.user('dev', 'system:authenticated'));
  }
  call(method: string, path: string, body?: unknown, as?: KeyPair): Promise<Answer<Body>> {
    return this.server.call<Body>(method, path, { body, ...(as === undefined ? {} : { as }) });
  }
  /** Creates a namespace in which `dev` has the role edit. */
  async namespace(name: string, labels: Record<string, string> = {}): Promise<void> {
    await this.call('POST', '/api/v1/namespaces', { metadata: { name, labels, annotations: ALLOCATED } });
    await this.call('POST', `/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: 'default' } });
    await this.call('POST', `/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: 'robot' } });
    await this.call('POST', `${RBAC}/namespaces/${name}/rolebindings`, {
      metadata: { name: 'dev' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
      subjects: [{ kind: 'User', name: 'dev' }],
    });
  }
  pod(inside: string, name: string, spec: object, as?: KeyPair, metadata: object = {}): Promise<Answer<Body>> {
    return this.call('POST', `/api/v1/namespaces/${inside}/pods`, { metadata: { name, ...metadata }, spec }, as);
  }
}

const sccOf = ({ body }: Answer<Body>): string | undefined => body.metadata?.annotations?.[SCC];

describe('security context constraints, profile okd', () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.start('okd');
    await cluster.namespace('shop');
  });
  after(() => cluster.server.stop());

  it("serves OpenShift's ten default security context constraints, with the table columns of oc", async () => {
    const { body } = await cluster.call('GET', `${SECURITY}/securitycontextconstraints`);
    assert.deepEqual(
      body.items?.map(({ metadata }) => metadata.name),
      [
        ...['anyuid', 'hostaccess', 'hostmount-anyuid', 'hostnetwork', 'hostnetwork-v2', 'nonroot', 'nonroot-v2'],
        ...['privileged', 'restricted', 'restricted-v2'],
      ],
    );
    const table = await cluster.server.call<{ columnDefinitions: { name: string }[]; rows: { cells: unknown[] }[] }>(
      'GET',
      `${SECURITY}/securitycontextconstraints?fieldSelector=metadata.name%3Danyuid`,
      { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } },
    );
    assert.deepEqual(
      table.body.columnDefinitions.map(({ name }) => name.toUpperCase()).join(' '),
      'NAME PRIV CAPS SELINUX RUNASUSER FSGROUP SUPGROUP PRIORITY READONLYROOTFS VOLUMES',
    );
    assert.deepEqual(table.body.rows[0]?.cells, [
      ...['anyuid', 'false', '<no value>', 'MustRunAs', 'RunAsAny', 'RunAsAny', 'RunAsAny', '10', 'false'],
      '["configMap","csi","downwardAPI","emptyDir","ephemeral","persistentVolumeClaim","projected","secret"]',
    ]);
  });

  it("security context constraints set the UID of a user's pod from the range of its namespace", async () => {
    const made = await cluster.pod('shop', 'p', plain, cluster.dev);
    assert.equal(made.code, 201, made.text);
    assert.equal(sccOf(made), 'restricted-v2');
    assert.equal(made.body.spec?.containers[0]?.securityContext?.['runAsUser'], MIN);
    assert.equal(made.body.spec?.securityContext?.['fsGroup'], MIN);
  });

  it('security context constraints reject a privileged pod with the reason of every constraint', async () => {
    const refused = await cluster.pod('shop', 'no', privileged, cluster.dev);
    assert.equal(refused.code, 403);
    const message = refused.body.message ?? '';
    assert.ok(
      message.startsWith('pods "no" is forbidden: unable to validate against any security context constraint: ['),
    );
    assert.ok(message.includes('provider "anyuid": Forbidden: not usable by user or serviceaccount'), message);
    assert.ok(
      message.includes(
        'provider restricted-v2: .containers[0].privileged: Invalid value: true: Privileged containers are not allowed',
      ),
      message,
    );
    assert.ok(message.includes('provider "privileged": Forbidden'), message);
  });

  it('security context constraints admit pods by the permissions of their service account', async () => {
    const spec = { ...root, serviceAccountName: 'robot' };
    assert.equal((await cluster.pod('shop', 'r', spec, cluster.dev)).code, 403);
    // The binding that `oc adm policy add-scc-to-user anyuid -z robot` writes.
    const bound = await cluster.call('POST', `${RBAC}/namespaces/shop/rolebindings`, {
      metadata: { name: 'system:openshift:scc:anyuid' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:openshift:scc:anyuid' },
      subjects: [{ kind: 'ServiceAccount', name: 'robot', namespace: 'shop' }],
    });
    assert.equal(bound.code, 201, bound.text);
    const made = await cluster.pod('shop', 'r', spec, cluster.dev);
    assert.equal(made.code, 201, made.text);
    assert.equal(sccOf(made), 'anyuid');
    assert.equal((await cluster.pod('shop', 'r2', root, cluster.dev)).code, 403, 'other accounts have nothing of it');
  });

  it('security context constraints do not let a user bind constraints without permission', async () => {
    const bound = await cluster.call(
      'POST',
      `${RBAC}/namespaces/shop/rolebindings`,
      {
        metadata: { name: 'mine' },
        roleRef: {
          apiGroup: 'rbac.authorization.k8s.io',
          kind: 'ClusterRole',
          name: 'system:openshift:scc:privileged',
        },
        subjects: [{ kind: 'User', name: 'dev' }],
      },
      cluster.dev,
    );
    assert.equal(bound.code, 403);
  });

  it("security context constraints set the scc annotation and overwrite a client's value", async () => {
    const forged = { annotations: { [SCC]: 'privileged' } };
    assert.equal(sccOf(await cluster.pod('shop', 'forged', plain, cluster.dev, forged)), 'restricted-v2');
    const path = '/api/v1/namespaces/shop/pods/forged';
    const patched = await cluster.server.call<Body>('PATCH', path, {
      raw: JSON.stringify({ metadata: { annotations: { [SCC]: 'privileged', other: 'x' } } }),
      type: 'application/merge-patch+json',
      as: cluster.dev,
    });
    assert.equal(patched.code, 200, patched.text);
    assert.equal(sccOf(patched), 'restricted-v2');
    assert.equal(patched.body.metadata?.annotations?.['other'], 'x');
    const range = { metadata: { annotations: { 'openshift.io/sa.scc.uid-range': '0/1' } } };
    const namespace = await cluster.server.call('PATCH', '/api/v1/namespaces/shop', {
      raw: JSON.stringify(range),
      type: 'application/merge-patch+json',
      as: cluster.dev,
    });
    assert.equal(namespace.code, 403);
  });

  it('security context constraints do not let project administrators change security labels and annotations of the namespace', async () => {
    const lead = await cluster.server.user('lead', 'system:authenticated');
    await cluster.call('POST', `${RBAC}/clusterrolebindings`, {
      metadata: { name: 'lead' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
      subjects: [{ kind: 'User', name: 'lead' }],
    });
    const patch = (metadata: object) =>
      cluster.server.call<Body>('PATCH', '/apis/project.openshift.io/v1/projects/shop', {
        raw: JSON.stringify({ metadata }),
        type: 'application/merge-patch+json',
        as: lead,
      });
    for (const metadata of [
      { labels: { 'openshift.io/run-level': '0' } },
      { labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } },
      { annotations: { 'openshift.io/sa.scc.uid-range': '0/10000' } },
      { annotations: { 'openshift.io/sa.scc.uid-range': null } },
    ]) {
      const refused = await patch(metadata);
      assert.equal(refused.code, 422, refused.text);
      assert.match(refused.body.message ?? '', /field is immutable, try updating the namespace/);
    }
    const named = await patch({ annotations: { 'openshift.io/display-name': 'Shop' } });
    assert.equal(named.code, 200, named.text);
  });

  it('security context constraints check ephemeral containers of running pods', async () => {
    const debug = (name: string, securityContext?: object) =>
      cluster.server.call<Body>('PATCH', '/api/v1/namespaces/shop/pods/p/ephemeralcontainers', {
        raw: JSON.stringify({ spec: { ephemeralContainers: [{ ...container(securityContext), name }] } }),
        type: 'application/strategic-merge-patch+json',
        as: cluster.dev,
      });
    await cluster.call('POST', `${RBAC}/namespaces/shop/roles`, {
      metadata: { name: 'debug' },
      rules: [{ verbs: ['patch'], apiGroups: [''], resources: ['pods/ephemeralcontainers'] }],
    });
    await cluster.call('POST', `${RBAC}/namespaces/shop/rolebindings`, {
      metadata: { name: 'debug' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'debug' },
      subjects: [{ kind: 'User', name: 'dev' }],
    });
    const bad = await debug('bad', { privileged: true });
    assert.equal(bad.code, 403);
    assert.match(bad.body.message ?? '', /\.ephemeralContainers\[0\]\.privileged: Invalid value: true/);
    const made = await debug('good');
    assert.equal(made.code, 200, made.text);
    assert.equal(made.body.spec?.ephemeralContainers?.[0]?.securityContext?.['runAsUser'], MIN);
  });

  it('security context constraints reject exec into pods with host access', async () => {
    const made = await cluster.pod('shop', 'deep', { ...plain, hostPID: true });
    assert.equal(made.code, 201, made.text);
    assert.equal(sccOf(made), 'hostaccess');
    const exec = (name: string, as?: KeyPair) =>
      cluster.call('POST', `/api/v1/namespaces/shop/pods/${name}/exec?command=id&stdout=true`, undefined, as);
    const refused = await exec('deep', cluster.dev);
    assert.equal(refused.code, 403, refused.text);
    assert.match(refused.body.message ?? '', /Host PID is not allowed to be used/);
    // The pods do not run, so a permitted exec fails with another error.
    for (const other of [await exec('deep'), await exec('p', cluster.dev)])
      assert.doesNotMatch(other.body.message ?? '', /security context constraint/);
  });

  it('security context constraints exempt platform namespaces and mirror pods of nodes', async () => {
    await cluster.call('POST', '/api/v1/namespaces/kube-system/serviceaccounts', { metadata: { name: 'default' } });
    const made = await cluster.pod('kube-system', 'proxy', { ...privileged, hostNetwork: true });
    assert.equal(made.code, 201, made.text);
    assert.equal(sccOf(made), undefined);
    const mirror = { annotations: { 'kubernetes.io/config.mirror': 'x' } };
    const fake = await cluster.pod('shop', 'fake', { ...privileged, nodeName: 'n' }, cluster.dev, mirror);
    assert.equal(fake.code, 403);
    await cluster.namespace('level', { 'openshift.io/run-level': '1' });
    assert.equal((await cluster.pod('level', 'low', privileged, cluster.dev)).code, 201);
  });

  it('security context constraints answer pod security reviews', async () => {
    const ask = (kind: string, spec: object, as?: KeyPair) =>
      cluster.call('POST', `${SECURITY}/namespaces/shop/${kind.toLowerCase()}s`, { spec }, as);
    const self = await ask('PodSecurityPolicySelfSubjectReview', { template: { spec: plain } }, cluster.dev);
    assert.equal(self.code, 201, self.text);
    assert.deepEqual(self.body.status?.['allowedBy'], {
      apiVersion: 'security.openshift.io/v1',
      kind: 'SecurityContextConstraints',
      name: 'restricted-v2',
    });
    const other = await ask('PodSecurityPolicySubjectReview', { template: { spec: privileged }, user: 'dev' });
    assert.deepEqual(other.body.status, { reason: 'CantAssignSecurityContextConstraintProvider' });
    const accounts = await ask('PodSecurityPolicyReview', {
      template: { spec: root },
      serviceAccountNames: ['default', 'robot'],
    });
    const allowed = accounts.body.status?.['allowedServiceAccounts'] as { name: string }[];
    assert.deepEqual(
      allowed.map(({ name }) => name),
      ['robot'],
    );
    assert.equal(
      (await ask('PodSecurityPolicyReview', { template: { spec: plain }, serviceAccountNames: ['no'] })).code,
      400,
    );
    assert.equal((await ask('PodSecurityPolicySubjectReview', { template: { spec: plain } })).code, 422);
  });

  it('security context constraints reject invalid constraints', async () => {
    const wrong = await cluster.call('POST', `${SECURITY}/securitycontextconstraints`, {
      metadata: { name: 'wrong' },
      priority: -1,
      runAsUser: { type: 'Sometimes' },
      seLinuxContext: { type: 'RunAsAny' },
      allowedCapabilities: ['KILL'],
      requiredDropCapabilities: ['KILL'],
      volumes: ['none', 'secret'],
    });
    assert.equal(wrong.code, 422);
    for (const text of [
      'priority: Invalid value: -1: priority cannot be negative',
      'runAsUser.type: Invalid value: "Sometimes": invalid strategy type.  Valid values are',
      'capability is listed in allowedCapabilities and requiredDropCapabilities',
      "if 'none' is specified, no other values are allowed",
    ])
      assert.ok(wrong.body.message?.includes(text), `${text}: ${wrong.body.message}`);
  });

  it('deleting all security context constraints rejects new pods, but not existing pods and pods of platform namespaces', async () => {
    const removed = await cluster.call('DELETE', `${SECURITY}/securitycontextconstraints`);
    assert.equal(removed.code, 200, removed.text);
    const refused = await cluster.pod('shop', 'late', plain, cluster.dev);
    assert.equal(refused.code, 403);
    assert.match(refused.body.message ?? '', /no SecurityContextConstraints found in cluster/);
    const label = await cluster.server.call<Body>('PATCH', '/api/v1/namespaces/shop/pods/p', {
      raw: JSON.stringify({ metadata: { labels: { a: 'b' } } }),
      type: 'application/merge-patch+json',
    });
    assert.equal(label.code, 200, label.text);
    assert.equal((await cluster.pod('kube-system', 'next', privileged)).code, 201);
    const gone = await cluster.call('DELETE', '/api/v1/namespaces/shop/pods/p?gracePeriodSeconds=0');
    assert.equal(gone.code, 200, gone.text);
  });
});

describe('security context constraints, profile kubernetes', () => {
  it('security context constraints in the profile kubernetes are stored but not enforced', async () => {
    const cluster = await Cluster.start('kubernetes');
    try {
      await cluster.namespace('shop');
      const made = await cluster.pod('shop', 'p', privileged, cluster.dev);
      assert.equal(made.code, 201, made.text);
      assert.equal(sccOf(made), undefined);
      assert.equal((await cluster.call('GET', `${SECURITY}/securitycontextconstraints/privileged`)).code, 200);
    } finally {
      await cluster.server.stop();
    }
  });
});
