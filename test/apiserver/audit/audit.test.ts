/** Audit events: levels of the policy, and upstream's format. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { AuditPolicy } from '../../../src/apiserver/index.ts';
import { configure, patchOf, unconfigure, WebhookServer } from '../admission/webhook-server.ts';
import { startServer, type TestServer } from '../harness.ts';

interface Event {
  readonly kind: string;
  readonly apiVersion: string;
  readonly level: string;
  readonly auditID: string;
  readonly stage: string;
  readonly requestURI: string;
  readonly verb: string;
  readonly user: { readonly username?: string; readonly groups?: string[] };
  readonly impersonatedUser?: { readonly username: string };
  readonly authenticationMetadata?: { readonly impersonationConstraint?: string };
  readonly objectRef?: Record<string, string>;
  readonly responseStatus?: { readonly code: number; readonly reason?: string };
  readonly requestObject?: { readonly data?: Record<string, string>; readonly metadata?: Record<string, unknown> };
  readonly responseObject?: { readonly metadata?: Record<string, unknown>; readonly items?: unknown[] };
  readonly annotations?: Record<string, string>;
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
}

const policy: AuditPolicy = {
  omitStages: ['RequestReceived'],
  rules: [
    { level: 'None', nonResourceURLs: ['/healthz*', '/version'] },
    { level: 'None', users: ['quiet'], verbs: ['get'] },
    { level: 'Metadata', resources: [{ group: '', resources: ['secrets'] }] },
    {
      level: 'RequestResponse',
      resources: [{ group: '', resources: ['configmaps'] }],
      namespaces: ['default'],
      omitManagedFields: true,
    },
    { level: 'Request', resources: [{ group: '', resources: ['*/status', 'namespaces'] }], omitStages: [] },
    { level: 'Metadata' },
  ],
};

describe('audit', () => {
  const lines: string[] = [];
  let closed = 0;
  let server: TestServer;
  const sink = {
    accept: (line: string) => void lines.push(line),
    close: async () => {
      closed += 1;
    },
  };
  before(async () => {
    server = await startServer({ audit: { policy, sinks: [sink] } });
  });
  after(async () => {
    await server.stop();
    assert.equal(closed, 1);
  });
  const during = async (work: () => Promise<unknown>): Promise<Event[]> => {
    const from = lines.length;
    await work();
    await new Promise((resolve) => setTimeout(resolve, 20));
    return lines.slice(from).map((line) => JSON.parse(line) as Event);
  };
  const MAPS = '/api/v1/namespaces/default/configmaps';
  const map = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { a: 'b' } });

  it('records request and response of a write without managed fields, in upstream’s field order', async () => {
    const [event, ...more] = await during(() => server.call('POST', `${MAPS}?fieldManager=test`, { body: map('one') }));
    assert.deepEqual(more, []);
    assert.deepEqual(Object.keys(event ?? {}), [
      'kind',
      'apiVersion',
      'level',
      'auditID',
      'stage',
      'requestURI',
      'verb',
      'user',
      'sourceIPs',
      'objectRef',
      'responseStatus',
      'requestObject',
      'responseObject',
      'requestReceivedTimestamp',
      'stageTimestamp',
      'annotations',
    ]);
    assert.equal(event?.stage, 'ResponseComplete');
    assert.equal(event?.requestURI, `${MAPS}?fieldManager=test`);
    assert.deepEqual(event?.objectRef, {
      resource: 'configmaps',
      namespace: 'default',
      name: 'one',
      apiVersion: 'v1',
    });
    assert.deepEqual(event?.requestObject?.data, { a: 'b' });
    assert.equal(event?.responseObject?.metadata?.['name'], 'one');
    assert.equal(event?.responseObject?.metadata?.['managedFields'], undefined);
    assert.equal(event?.responseStatus?.code, 201);
    assert.equal(event?.annotations?.['authorization.k8s.io/decision'], 'allow');
    assert.match(event?.requestReceivedTimestamp ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  });

  it('records responses to protobuf clients, and lists, as JSON', async () => {
    const [event] = await during(() =>
      server.call('GET', `${MAPS}/one`, { headers: { accept: 'application/vnd.kubernetes.protobuf' } }),
    );
    assert.equal(event?.responseObject?.metadata?.['name'], 'one');
    const [list] = await during(() => server.call('GET', MAPS));
    assert.equal(list?.responseObject?.items?.length, 1);
  });

  it('audit omits bodies of secrets, and records no events that the policy excludes', async () => {
    const [event] = await during(() =>
      server.call('POST', '/api/v1/namespaces/default/secrets', {
        body: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, stringData: { p: 'hunter2' } },
      }),
    );
    assert.equal(event?.level, 'Metadata');
    assert.equal(event?.objectRef?.['name'], 's');
    assert.ok(!lines.some((line) => line.includes('hunter2') || line.includes('aHVudGVyMg')));
    assert.deepEqual(await during(() => server.call('GET', '/healthz/etcd')), []);
    const quiet = await server.user('quiet');
    assert.deepEqual(await during(() => server.call('GET', '/api/v1/namespaces/default/pods/x', { as: quiet })), []);
    assert.equal((await during(() => server.call('GET', '/api/v1/pods', { as: quiet }))).length, 1);
  });

  it('records rejected users with the reason, and unauthenticated requests', async () => {
    const bob = await server.user('bob', 'dev');
    const [event] = await during(() => server.call('GET', '/api/v1/secrets', { as: bob }));
    assert.equal(event?.responseStatus?.code, 403);
    assert.equal(event?.responseStatus?.reason, 'Forbidden');
    assert.equal(event?.annotations?.['authorization.k8s.io/decision'], 'forbid');
    assert.deepEqual(event?.user.username, 'bob');
    const [anonymous] = await during(() =>
      server.call('GET', '/api/v1/pods', { as: null, headers: { authorization: 'Bearer made-up' } }),
    );
    assert.equal(anonymous?.responseStatus?.code, 401);
    assert.ok(!JSON.stringify(anonymous).includes('made-up'));
  });

  it('audit records the impersonating user and the impersonated user', async () => {
    const [event] = await during(() =>
      server.call('GET', '/api/v1/pods', { headers: { 'impersonate-user': 'alice', 'audit-id': 'mine' } }),
    );
    assert.equal(event?.user.username, 'system:admin');
    assert.equal(event?.impersonatedUser?.username, 'alice');
    assert.deepEqual(event?.authenticationMetadata, { impersonationConstraint: 'impersonate:user-info' });
    const headers = { 'impersonate-user': 'alice', 'impersonate-group': 'system:masters' };
    const [free] = await during(() => server.call('GET', '/api/v1/pods', { headers }));
    assert.equal(free?.authenticationMetadata, undefined, 'allowed for all requests');
    assert.equal(event?.auditID, 'mine');
  });

  it('audit records the start and the end of a watch', async () => {
    const events = await during(() => server.call('GET', `${MAPS}?watch=true&timeoutSeconds=1`));
    assert.deepEqual(
      events.map(({ stage }) => stage),
      ['ResponseStarted', 'ResponseComplete'],
    );
    assert.equal(new Set(events.map(({ auditID }) => auditID)).size, 1);
  });

  it('audit records delete options', async () => {
    await server.call('POST', MAPS, { body: map('gone') });
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 3 };
    const [event] = await during(() => server.call('DELETE', `${MAPS}/gone`, { body }));
    assert.deepEqual(event?.requestObject, body);
    assert.equal(event?.objectRef?.['name'], 'gone');
    assert.ok(event?.responseObject);
  });

  it('records mutations by webhooks, and their patches at levels Request and RequestResponse', async () => {
    const hooks = await WebhookServer.start();
    try {
      hooks.on('/label', () => patchOf({ op: 'add', path: '/metadata/labels', value: { seen: 'yes' } }));
      hooks.on('/same', () => ({ allowed: true }));
      hooks.on('/broken', () => 'no answer');
      await configure(server, 'Mutating', 'm', hooks.hook('/same'), hooks.hook('/label'));
      const broken = hooks.hook('/broken', { failurePolicy: 'Ignore' });
      await configure(server, 'Mutating', 'n', broken);
      await configure(server, 'Validating', 'v', hooks.hook('/same'), broken);
      const [event] = await during(() => server.call('POST', MAPS, { body: map('hooked') }));
      const annotations = Object.entries(event?.annotations ?? {}).filter(([key]) => key.includes('webhook'));
      const configurationNote = (webhook: string, more: object, configuration = 'm') =>
        JSON.stringify({ configuration, webhook, ...more });
      const patch = [{ op: 'add', path: '/metadata/labels', value: { seen: 'yes' } }];
      assert.deepEqual(Object.fromEntries(annotations), {
        'mutation.webhook.admission.k8s.io/round_0_index_0': configurationNote('same.example.com', { mutated: false }),
        'mutation.webhook.admission.k8s.io/round_0_index_1': configurationNote('label.example.com', { mutated: true }),
        'mutation.webhook.admission.k8s.io/round_0_index_2': configurationNote(
          'broken.example.com',
          { mutated: false },
          'n',
        ),
        'patch.webhook.admission.k8s.io/round_0_index_1': configurationNote('label.example.com', {
          patch,
          patchType: 'JSONPatch',
        }),
        'failed-open.mutation.webhook.admission.k8s.io/round_0_index_2': 'broken.example.com',
        'failed-open.validating.webhook.admission.k8s.io/round_0_index_1': 'broken.example.com',
      });
      const other = '/api/v1/namespaces/kube-system/configmaps';
      const [meta] = await during(() => server.call('POST', other, { body: map('hooked') }));
      assert.equal(meta?.level, 'Metadata');
      assert.ok(meta?.annotations?.['mutation.webhook.admission.k8s.io/round_0_index_1']);
      assert.equal(meta?.annotations?.['patch.webhook.admission.k8s.io/round_0_index_1'], undefined);
    } finally {
      await unconfigure(server);
      await hooks.stop();
    }
  });

  it('records audit annotations of policies once per value, and the first validation failure', async () => {
    const REGISTRATION = '/apis/admissionregistration.k8s.io/v1';
    const post = async (path: string, body: object): Promise<void> => {
      const made = await server.call('POST', path, { body });
      assert.equal(made.code, 201, made.text);
    };
    const other = '/api/v1/namespaces/kube-system/configmaps';
    for (const name of ['one', 'two', 'three'])
      await post(other, { metadata: { name, labels: { of: 'audit' } }, data: { v: name === 'three' ? 'two' : name } });
    await post(`${REGISTRATION}/validatingadmissionpolicies`, {
      metadata: { name: 'p' },
      spec: {
        matchConstraints: {
          resourceRules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
        },
        paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
        validations: [{ expression: 'true' }, { expression: '1 < 0' }, { expression: '2 < 0' }],
        auditAnnotations: [
          { key: 'value', valueExpression: "' ' + params.data.v" },
          { key: 'none', valueExpression: 'null' },
          { key: 'failing', valueExpression: "object.data.a == 'b' ? '' : string(object.data.c)" },
        ],
      },
    });
    await post(`${REGISTRATION}/validatingadmissionpolicybindings`, {
      metadata: { name: 'b' },
      spec: {
        policyName: 'p',
        validationActions: ['Warn', 'Audit'],
        paramRef: {
          namespace: 'kube-system',
          selector: { matchLabels: { of: 'audit' } },
          parameterNotFoundAction: 'Deny',
        },
        matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'default' } } },
      },
    });
    try {
      const [event] = await during(() => server.call('POST', MAPS, { body: map('judged') }));
      assert.deepEqual(
        Object.entries(event?.annotations ?? {}).filter(([key]) => /^p\/|validation_failure/.test(key)),
        [
          [
            'validation.policy.admission.k8s.io/validation_failure',
            '[{"message":"failed expression: 1 \\u003c 0","policy":"p","binding":"b","expressionIndex":1,"validationActions":["Warn","Audit"]}]',
          ],
          ['p/value', 'one, two'],
        ],
      );
      // A failing audit annotation rejects the request, whatever the validation actions are.
      const refused = await server.call<{ message: string; code: number }>('POST', MAPS, {
        body: { ...map('unjudged'), data: {} },
      });
      assert.equal(refused.code, 422, refused.text);
      assert.match(
        refused.body.message,
        /'p' with binding 'b' denied request: expression '.*' resulted in error: no such key: data/,
      );
    } finally {
      for (const kind of ['policies', 'policybindings'])
        await server.call('DELETE', `${REGISTRATION}/validatingadmission${kind}`);
    }
  });
});
