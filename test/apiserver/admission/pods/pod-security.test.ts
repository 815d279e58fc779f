/** Pod Security admission: rejections, warnings, audit annotations, exemptions, and warnings about existing pods. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { PRIVILEGED_POLICY } from '../../../../src/apiserver/core/pod-security/policy.ts';
import type { KeyPair } from '../../../../src/pki/certificate.ts';
import { type Answer, startServer, type TestServer } from '../../harness.ts';

interface Status {
  readonly message: string;
  readonly reason: string;
}

interface Event {
  readonly annotations?: Record<string, string>;
}

const label = (mode: string): string => `pod-security.kubernetes.io/${mode}`;
const RESTRICTED = {
  securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  containers: [
    {
      name: 'c',
      image: 'i',
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    },
  ],
};
const plain = { containers: [{ name: 'c', image: 'i' }] };
const MISSING =
  'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")';

describe('Pod Security admission', () => {
  let server: TestServer;
  let exempt: KeyPair;
  const events: Event[] = [];
  before(async () => {
    server = await startServer({
      config: {
        admission: {
          podSecurity: {
            defaults: { ...PRIVILEGED_POLICY, warn: { level: 'baseline', version: 'latest' } },
            exemptions: {
              usernames: new Set(['exempt']),
              namespaces: new Set(['free']),
              runtimeClasses: new Set(['vm']),
            },
          },
        },
      },
      audit: {
        policy: { rules: [{ level: 'Metadata' }], omitStages: ['RequestReceived'] },
        sinks: [{ accept: (event) => void events.push(JSON.parse(event) as Event), close: async () => {} }],
      },
    });
    exempt = await server.user('exempt', 'system:masters');
  });
  after(() => server.stop());

  const post = (path: string, body: unknown, as?: KeyPair) =>
    server.call<Status>('POST', path, { body, ...(as === undefined ? {} : { as }) });
  const namespace = async (name: string, labels: Record<string, string> = {}): Promise<Answer<Status>> => {
    const made = await post('/api/v1/namespaces', { metadata: { name, labels } });
    await post(`/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: 'default' } });
    return made;
  };
  const pod = (inside: string, name: string, spec: object, as?: KeyPair, more: object = {}) =>
    post(`/api/v1/namespaces/${inside}/pods`, { metadata: { name, ...more }, spec }, as);
  const warningsOf = ({ headers }: Answer<unknown>): string[] =>
    [
      ...[headers.warning ?? []]
        .flat()
        .join(', ')
        .matchAll(/299 - "((?:[^"\\]|\\.)*)"/g),
    ].map(([, text = '']) => text.replaceAll('\\"', '"'));

  it("rejects pods that violate the profile of the namespace, in upstream's wording", async () => {
    await namespace('strict', { [label('enforce')]: 'restricted' });
    const refused = await pod('strict', 'p', plain);
    assert.equal(refused.code, 403);
    assert.equal(refused.body.reason, 'Forbidden');
    assert.equal(refused.body.message, `pods "p" is forbidden: violates PodSecurity "restricted:latest": ${MISSING}`);
    assert.equal((await pod('strict', 'q', RESTRICTED)).code, 201);
  });

  it('Pod Security admission evaluates the profile version in the label, not the version of the server', async () => {
    await namespace('old', { [label('enforce')]: 'restricted', [label('enforce-version')]: 'v1.7' });
    assert.equal((await pod('old', 'p', { ...plain, securityContext: { runAsNonRoot: true } })).code, 201);
    const refused = await pod('old', 'q', plain);
    assert.match(refused.body.message, /violates PodSecurity "restricted:v1\.7": runAsNonRoot != true/);
  });

  it('the modes warn and audit add warnings and audit annotations, and no mode rejects workloads', async () => {
    await namespace('watched', { [label('warn')]: 'restricted', [label('audit')]: 'baseline' });
    const made = await pod('watched', 'p', { ...plain, hostPID: true });
    assert.equal(made.code, 201, made.text);
    assert.deepEqual(warningsOf(made), [
      `would violate PodSecurity "restricted:latest": host namespaces (hostPID=true), ${MISSING}`,
    ]);
    const workload = {
      metadata: { name: 'd' },
      spec: {
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { ...plain, hostPID: true } },
      },
    };
    const strict = await post('/apis/apps/v1/namespaces/strict/deployments', workload);
    assert.equal(strict.code, 201, strict.text);
    const deployed = await post('/apis/apps/v1/namespaces/watched/deployments', workload);
    assert.match(warningsOf(deployed)[0] ?? '', /^would violate PodSecurity "restricted:latest": host namespaces/);
    const { selector: _selector, ...job } = { ...workload.spec, selector: undefined };
    job.template.spec = { ...job.template.spec, restartPolicy: 'Never' } as never;
    const cron = await post('/apis/batch/v1/namespaces/watched/cronjobs', {
      metadata: { name: 'c' },
      spec: { schedule: '* * * * *', jobTemplate: { spec: job } },
    });
    assert.equal(cron.code, 201, cron.text);
    assert.match(warningsOf(cron)[0] ?? '', /^would violate PodSecurity "restricted:latest": host namespaces/);
  });

  it('applies defaults to namespaces without labels', async () => {
    await namespace('silent');
    const made = await pod('silent', 'p', { ...plain, hostPID: true });
    assert.deepEqual(warningsOf(made), ['would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)']);
  });

  it('exempts configured users, namespaces and runtime classes', async () => {
    assert.equal((await pod('strict', 'by-user', plain, exempt)).code, 201);
    const made = await namespace('free', { [label('enforce')]: 'baseline', [label('warn')]: 'restricted' });
    assert.deepEqual(warningsOf(made), [
      'namespace "free" is exempt from Pod Security, and the policy (enforce=baseline:latest, warn=restricted:latest) will be ignored',
    ]);
    assert.equal((await pod('free', 'p', { ...plain, hostPID: true })).code, 201);
    await post('/apis/node.k8s.io/v1/runtimeclasses', { metadata: { name: 'vm' }, handler: 'vm' });
    assert.equal((await pod('strict', 'in-vm', { ...plain, runtimeClassName: 'vm' })).code, 201);
  });

  it('Pod Security admission checks only updates that can change the result', async () => {
    await namespace('later');
    assert.equal((await pod('later', 'p', plain)).code, 201);
    const patch = (path: string, body: unknown, type = 'application/merge-patch+json') =>
      server.call<Status>('PATCH', path, { body, type });
    const stricter = await patch('/api/v1/namespaces/later', {
      metadata: { labels: { [label('enforce')]: 'restricted' } },
    });
    assert.equal(stricter.code, 200, stricter.text);
    assert.deepEqual(warningsOf(stricter), [
      'existing pods in namespace "later" violate the new PodSecurity enforce level "restricted:latest"',
      'p: allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile',
    ]);
    const at = '/api/v1/namespaces/later/pods/p';
    assert.equal((await patch(at, { metadata: { labels: { x: 'y' } } })).code, 200);
    const image = await patch(
      at,
      { spec: { containers: [{ name: 'c', image: 'other' }] } },
      'application/strategic-merge-patch+json',
    );
    assert.equal(image.code, 403);
    assert.match(image.body.message, /^pods "p" is forbidden: violates PodSecurity "restricted:latest"/);
    const debug = await patch(
      `${at}/ephemeralcontainers`,
      { spec: { ephemeralContainers: [{ name: 'd', image: 'i' }] } },
      'application/strategic-merge-patch+json',
    );
    assert.equal(debug.code, 403, debug.text);
    const status = await patch(`${at}/status`, { status: { message: 'x' } });
    assert.equal(status.code, 200, status.text);
  });

  it('rejects invalid Pod Security labels of namespaces', async () => {
    const bad = await namespace('bad', { [label('enforce')]: 'strict', [label('warn-version')]: 'new' });
    assert.equal(bad.code, 422);
    assert.equal(
      bad.body.message,
      'Namespace "bad" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "new": must be "latest" or "v1.x"]',
    );
  });

  it('Pod Security admission records its decision in audit annotations', () => {
    const noted = events
      .filter(({ annotations }) => annotations !== undefined)
      .map(({ annotations = {} }) => annotations);
    const has = (key: string, value: RegExp) =>
      assert.ok(
        noted.some((each) => value.test(each[label(key)] ?? '')),
        `${key}: ${JSON.stringify(noted)}`,
      );
    has('enforce-policy', /^restricted:latest$/);
    has('enforce-policy', /^privileged:latest$/);
    has('audit-violations', /^would violate PodSecurity "baseline:latest": host namespaces \(hostPID=true\)$/);
    has('exempt', /^user$/);
    has('exempt', /^namespace$/);
    has('exempt', /^runtimeClass$/);
  });
});
