import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ApiValues, readApiArguments } from '../../../src/apiserver/config/index.ts';
import { admissionOf } from '../../../src/host/apiserver/admission.ts';
import { startServer } from '../harness.ts';

const HEAD = 'apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n';
const POD_SECURITY = `apiVersion: pod-security.admission.config.k8s.io/v1
kind: PodSecurityConfiguration
defaults: {enforce: baseline, enforce-version: v1.30, warn: restricted}
exemptions: {usernames: [me], namespaces: [kube-system]}
`;

describe('admission flags', () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'admission-'));
    await writeFile(join(directory, 'pod-security.yaml'), POD_SECURITY);
  });
  after(() => rm(directory, { recursive: true }));
  const read = (argv: readonly string[], ownHost = false) => {
    const values = new ApiValues((path) => join(directory, path));
    readApiArguments(argv, values);
    return admissionOf(values, { referredToBy: 'test', ownHost });
  };
  const configured = async (plugins: string) => {
    await writeFile(join(directory, 'admission.yaml'), `${HEAD}plugins:\n${plugins}`);
    return (await read(['--admission-control-config-file=admission.yaml'])).admission;
  };

  it("enables upstream's default plug-ins, and additional plug-ins in the host's own configuration", async () => {
    assert.deepEqual((await read([])).disabledAdmission, ['NodeRestriction', 'OwnerReferencesPermissionEnforcement']);
    assert.deepEqual(await read([], true), { disabledAdmission: [], enabledAdmission: ['DenyServiceExternalIPs'] });
    assert.deepEqual(await read(['--disable-admission-plugins=DenyServiceExternalIPs'], true), {
      disabledAdmission: ['DenyServiceExternalIPs'],
      enabledAdmission: [],
    });
    const requested = await read([
      '--enable-admission-plugins=PodNodeSelector,AlwaysPullImages,ClusterTrustBundleAttest',
    ]);
    assert.deepEqual(requested.enabledAdmission, ['AlwaysPullImages', 'PodNodeSelector']);
    const some = await read(['--enable-admission-plugins=NodeRestriction', '--disable-admission-plugins=PodSecurity']);
    assert.deepEqual(some.disabledAdmission, ['PodSecurity', 'OwnerReferencesPermissionEnforcement']);
  });

  it('sets the default toleration times of pods for failed nodes', async () => {
    const { admission = {} } = await read(['--default-not-ready-toleration-seconds=7']);
    assert.deepEqual(admission, { tolerationSeconds: { notReady: 7, unreachable: 300 } });
    const server = await startServer({ config: { admission } });
    try {
      await server.call('POST', '/api/v1/namespaces/default/serviceaccounts', {
        body: { metadata: { name: 'default' } },
      });
      const body = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } };
      const made = await server.call<{ spec: { tolerations: { tolerationSeconds: number }[] } }>(
        'POST',
        '/api/v1/namespaces/default/pods',
        { body },
      );
      assert.deepEqual(
        made.body.spec.tolerations.map((each) => each.tolerationSeconds),
        [7, 300],
      );
    } finally {
      await server.stop();
    }
  });

  it('reads the Pod Security configuration inline or from a referenced file', async () => {
    const expected = {
      podSecurity: {
        defaults: {
          enforce: { level: 'baseline', version: 30 },
          audit: { level: 'privileged', version: 'latest' },
          warn: { level: 'restricted', version: 'latest' },
        },
        exemptions: { usernames: new Set(['me']), namespaces: new Set(['kube-system']), runtimeClasses: new Set() },
      },
    };
    assert.deepEqual(await configured('- {name: PodSecurity, path: pod-security.yaml}\n'), expected);
    const inline = POD_SECURITY.replaceAll(/^/gm, '    ');
    assert.deepEqual(await configured(`- name: PodSecurity\n  configuration:\n${inline}`), expected);
  });

  it('reads the configuration of admission plug-ins from files', async () => {
    const settings = await configured(`- name: PodNodeSelector
  configuration: {podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: "a=b,c=d", ns: ""}}
- name: PodTolerationRestriction
  configuration:
    apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1
    kind: Configuration
    default: [{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits: [{type: Server, qps: 50, burst: 100}]
- name: ProjectRequestLimit
  configuration:
    apiVersion: project.openshift.io/v1
    kind: ProjectRequestLimitConfig
    limits: [{selector: {level: admin}}, {maxProjects: 2}]
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - {resource: pods, matchScopes: [{scopeName: PriorityClass, operator: In, values: [high]}]}
    - {resource: persistentvolumeclaims, matchContains: [requests.storage]}
`);
    assert.deepEqual(settings, {
      podNodeSelector: { clusterDefault: { a: 'b', c: 'd' }, whitelists: new Map([['ns', {}]]) },
      podTolerations: {
        defaults: [{ key: 'k', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 }],
        whitelist: [],
      },
      eventLimits: [{ type: 'Server', qps: 50, burst: 100, cacheSize: 4096 }],
      projectRequestLimits: [
        { selector: { level: 'admin' }, maxProjects: undefined },
        { selector: {}, maxProjects: 2 },
      ],
      limitedResources: new Map([
        [
          'pods.',
          [{ matchContains: [], matchScopes: [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }] }],
        ],
        ['persistentvolumeclaims.', [{ matchContains: ['requests.storage'], matchScopes: [] }]],
      ]),
    });
  });

  it('reads the client credentials for admission webhooks', async () => {
    const write = (name: string, text: string) => writeFile(join(directory, name), text, { mode: 0o600 });
    const plugin = (name: string, file: string) => `- name: ${name}
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: "${file}"}
`;
    const file = join(directory, 'hooks.kubeconfig');
    await write('token', 'from-file\n');
    await write('key.pem', 'KEY');
    const users = (...entries: string[]) =>
      write(
        'hooks.kubeconfig',
        `apiVersion: v1\nkind: Config\nusers:\n${entries.map((each) => `- ${each}\n`).join('')}`,
      );
    await users(
      '{name: a.test, user: {token: t}}',
      '{name: "*.test", user: {tokenFile: token}}',
      '{name: b, user: {username: u, password: p}}',
      `{name: "*", user: {client-certificate-data: ${Buffer.from('CERT').toString('base64')}, client-key: key.pem}}`,
    );
    const settings = await configured(plugin('MutatingAdmissionWebhook', file));
    assert.deepEqual(settings, {
      mutatingAs: {
        users: new Map([
          ['a.test', { authorization: 'Bearer t' }],
          ['*.test', { authorization: 'Bearer from-file' }],
          ['b', { authorization: `Basic ${Buffer.from('u:p').toString('base64')}` }],
          ['*', { certificate: 'CERT', key: 'KEY' }],
        ]),
      },
    });
    for (const [entry, complaint] of [
      ['{user: {token: t}}', /hooks\.kubeconfig: users\[0\]\.name is missing/],
      ['{name: a, user: {exec: {command: x}}}', /users\[0\]\.user\.exec is not supported/],
      [
        '{name: a, user: {client-key: key.pem}}',
        /user\.client-certificate is missing: a client certificate and its key must be given together/,
      ],
      ['{name: a, user: {token: [1]}}', /user\.token must be a string/],
    ] as const) {
      await users(entry);
      await assert.rejects(configured(plugin('ValidatingAdmissionWebhook', file)), complaint);
    }
    await assert.rejects(
      configured(plugin('MutatingAdmissionWebhook', 'a')),
      /kubeConfigFile: .*must be an absolute file path/,
    );
  });

  it('rejects invalid admission configuration with file, line and field', async () => {
    const cases: [string, RegExp][] = [
      ['- {name: Bogus}\n', /admission\.yaml: plugins\[0\]\.name: "Bogus" takes no configuration here/],
      [
        '- {name: PodSecurity}\n- {name: PodSecurity}\n',
        /admission\.yaml: plugins\[1\]\.name: "PodSecurity" is given twice/,
      ],
      [
        '- name: PodSecurity\n  configuration:\n    apiVersion: pod-security.admission.config.k8s.io/v1\n    kind: PodSecurityConfiguration\n    defaults: {enforce: strict}\n',
        /admission\.yaml:8: plugins\[0\]\.configuration\.defaults\.enforce: "strict" is not accepted; must be one of privileged, baseline, restricted/,
      ],
      [
        '- name: PodNodeSelector\n  configuration: {podNodeSelectorPluginConfig: {ns: "a in (b)"}}\n',
        /podNodeSelectorPluginConfig\.ns: "a in \(b\)" is not accepted; write labels such as key=value,key=value/,
      ],
      ['- {name: PodSecurity, path: missing.yaml}\n', /cannot read .*missing\.yaml/],
    ];
    for (const [plugins, message] of cases) await assert.rejects(configured(plugins), message);
  });
});
