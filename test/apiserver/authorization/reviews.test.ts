/** Requests to authorization webhooks, their failures, metrics and audit annotations. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { compileAccessConditions } from '../../../src/apiserver/authorization/conditions.ts';
import type { Authorizer } from '../../../src/apiserver/config/server-config.ts';
import { WebhookServer } from '../admission/webhook-server.ts';
import { startServer, type TestServer } from '../harness.ts';

interface Spec {
  readonly resourceAttributes?: Record<string, unknown>;
}

const FIELDS = 'spec.nodeName=mine,metadata.name!=b,metadata.name!=a';
const LABELS = 'tier in (b,a),ask=true,size>3';
const field = (key: string, operator: string, ...values: string[]) => ({ key, operator, values });
const FIELDS_IN_ORDER = [
  field('metadata.name', 'NotIn', 'a'),
  field('metadata.name', 'NotIn', 'b'),
  field('spec.nodeName', 'In', 'mine'),
];
const LABELS_IN_ORDER = [field('ask', 'In', 'true'), field('tier', 'In', 'a', 'b')];

describe('authorization webhooks', () => {
  let hooks: WebhookServer;
  let server: TestServer;
  const requested: Spec[] = [];
  const recorded: Record<string, unknown>[] = [];
  before(async () => {
    hooks = await WebhookServer.start();
    hooks.on('/answer', (review) => {
      const { spec } = review as unknown as { spec: Spec };
      requested.push(spec);
      const { name, namespace } = spec.resourceAttributes ?? {};
      return JSON.stringify({ status: { allowed: name !== 'barred' && namespace !== 'barred', reason: 'by webhook' } });
    });
    hooks.on('/deny', () => JSON.stringify({ status: { denied: true, reason: 'never' } }));
    hooks.on('/broken', () => 'nonsense');
    const webhook = (name: string, source: string, more: object = {}): Authorizer => ({
      type: 'Webhook',
      name,
      webhook: {
        endpoint: {
          url: `https://127.0.0.1:${hooks.port}/${name}`,
          ca: Buffer.from(hooks.caBundle, 'base64').toString(),
        },
        version: 'v1',
        allowedMs: 0,
        deniedMs: 0,
        conditions: compileAccessConditions([source]),
        ...more,
      },
    });
    const about = (namespace: string) => `request.?resourceAttributes.namespace.orValue('') == '${namespace}'`;
    server = await startServer({
      config: {
        authorizers: [
          { type: 'Node' },
          { type: 'RBAC' },
          webhook('deny', about('denied'), { failurePolicy: 'NoOpinion' }),
          webhook('broken', about('broken'), { failurePolicy: 'NoOpinion' }),
          webhook('answer', "!(request.?resourceAttributes.namespace.orValue('') in ['broken', 'denied'])"),
        ],
      },
      audit: {
        policy: { rules: [{ level: 'Metadata' }], omitStages: ['RequestReceived'] },
        sinks: [
          {
            accept: (line) => {
              recorded.push(JSON.parse(line));
              return undefined;
            },
            close: async () => undefined,
          },
        ],
      },
    });
  });
  after(async () => {
    await server.stop();
    await hooks.stop();
  });
  beforeEach(() => {
    requested.length = 0;
    recorded.length = 0;
  });

  const review = async (resourceAttributes: Record<string, unknown>, user = 'ann', ...groups: string[]) => {
    const { code, body } = await server.call<{ status: Record<string, unknown>; message: string }>(
      'POST',
      '/apis/authorization.k8s.io/v1/subjectaccessreviews',
      {
        body: {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SubjectAccessReview',
          spec: { user, groups, resourceAttributes },
        },
      },
    );
    return { code, status: body.status, message: body.message };
  };

  it('authorization webhooks receive the version and the selectors of a request, in order', async () => {
    const ann = await server.user('ann', 'dev');
    const query = `fieldSelector=${encodeURIComponent(FIELDS)}&labelSelector=${encodeURIComponent(LABELS)}`;
    assert.equal((await server.call('GET', `/apis/apps/v1/deployments?${query}`, { as: ann })).code, 400);
    assert.deepEqual(
      requested.map(({ resourceAttributes }) => resourceAttributes),
      [
        {
          verb: 'list',
          group: 'apps',
          version: 'v1',
          resource: 'deployments',
          fieldSelector: { requirements: FIELDS_IN_ORDER },
          labelSelector: { requirements: LABELS_IN_ORDER },
        },
      ],
    );
    requested.length = 0;
    await server.call('GET', `/api/v1/namespaces/default/pods/one?${query}`, { as: ann });
    assert.equal(requested[0]?.resourceAttributes?.['fieldSelector'], undefined, 'they mean nothing there');
  });

  it('authorization webhooks receive the selectors of a review unchanged, without unknown operators', async () => {
    const list = { verb: 'list', resource: 'pods' };
    const requirements = [field('spec.nodeName', 'In', 'mine'), field('metadata.name', 'NotIn', 'b')];
    const labels = [field('tier', 'In', 'b', 'a'), { key: 'ask', operator: 'Exists' }];
    const cases: ReadonlyArray<readonly [Record<string, unknown>, Record<string, unknown>, string?]> = [
      [
        { version: 'v7', fieldSelector: { rawSelector: FIELDS }, labelSelector: { rawSelector: LABELS } },
        {
          version: 'v7',
          fieldSelector: { requirements: FIELDS_IN_ORDER },
          labelSelector: { requirements: LABELS_IN_ORDER },
        },
      ],
      [
        { fieldSelector: { requirements }, labelSelector: { requirements: labels } },
        { version: '*', fieldSelector: { requirements }, labelSelector: { requirements: labels } },
      ],
      [
        { fieldSelector: { requirements: [...requirements, { key: 'x', operator: 'Unknown' }] } },
        { version: '*', fieldSelector: { requirements } },
        'spec.resourceAttributes.fieldSelector partially ignored due to parse error',
      ],
      [
        { labelSelector: { rawSelector: 'a in (' }, fieldSelector: { requirements: [field('x', 'In', 'a', 'b')] } },
        { version: '*' },
        'spec.resourceAttributes.fieldSelector ignored due to parse error; spec.resourceAttributes.labelSelector ignored due to parse error',
      ],
    ];
    for (const [written, reported, evaluationError] of cases) {
      requested.length = 0;
      const { status } = await review({ ...list, ...written });
      assert.deepEqual(status, {
        allowed: true,
        reason: 'by webhook',
        ...(evaluationError === undefined ? {} : { evaluationError }),
      });
      assert.deepEqual(
        requested.map(({ resourceAttributes }) => resourceAttributes),
        [{ ...list, ...reported }],
      );
    }
  });

  it('selectors of reviews reach the node authorizer', async () => {
    const slices = {
      verb: 'list',
      group: 'resource.k8s.io',
      version: 'v1',
      resource: 'resourceslices',
      namespace: 'broken',
    };
    const of = (node: string) => ({ ...slices, fieldSelector: { rawSelector: `spec.nodeName=${node}` } });
    assert.equal((await review(of('n1'), 'system:node:n1', 'system:nodes')).status['allowed'], true);
    assert.equal((await review(of('n2'), 'system:node:n1', 'system:nodes')).status['allowed'], false);
  });

  it('rejects access reviews with empty and duplicate selectors', async () => {
    const cases: ReadonlyArray<readonly [object, RegExp]> = [
      [
        { rawSelector: 'a=b', requirements: [field('a', 'In', 'b')] },
        /fieldSelector\.rawSelector: Invalid value: "a=b": may not specified at the same time as requirements/,
      ],
      [
        {},
        /fieldSelector\.requirements: Required value: when spec\.resourceAttributes\.fieldSelector is specified, requirements or rawSelector is required/,
      ],
      [{ requirements: [field('', 'In', 'b')] }, /requirements\[0\]\.key: Required value: must be specified/],
      [
        { requirements: [field('a', 'In')] },
        /requirements\[0\]\.values: Required value: must be specified when `operator` is 'In' or 'NotIn'/,
      ],
      [
        { requirements: [field('a', 'Exists', 'b')] },
        /requirements\[0\]\.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'/,
      ],
    ];
    for (const [fieldSelector, message] of cases) {
      const answer = await review({ verb: 'list', resource: 'pods', fieldSelector });
      assert.deepEqual([answer.code, message.test(answer.message)], [422, true], answer.message);
    }
  });

  it('rejects access reviews with a name, and local reviews for another namespace', async () => {
    const group = 'authorization.k8s.io/v1';
    const inside = { verb: 'get', resource: 'pods', namespace: 'default' };
    const local = '/namespaces/default/localsubjectaccessreviews';
    const cases: ReadonlyArray<readonly [string, string, object, object, RegExp | undefined]> = [
      [local, 'LocalSubjectAccessReview', {}, { resourceAttributes: inside }, undefined],
      [local, 'LocalSubjectAccessReview', { namespace: 'default' }, { resourceAttributes: inside }, undefined],
      [
        local,
        'LocalSubjectAccessReview',
        {},
        { resourceAttributes: { ...inside, namespace: 'other' } },
        /spec\.resourceAttributes\.namespace: Invalid value: "other": must match metadata\.namespace/,
      ],
      [
        local,
        'LocalSubjectAccessReview',
        {},
        { resourceAttributes: { ...inside, namespace: '' } },
        /spec\.resourceAttributes\.namespace: Invalid value: "": must match metadata\.namespace/,
      ],
      [
        local,
        'LocalSubjectAccessReview',
        {},
        { nonResourceAttributes: { path: '/x', verb: 'get' } },
        /spec\.nonResourceAttributes: Invalid value: .*: disallowed on this kind of request/,
      ],
      [
        local,
        'LocalSubjectAccessReview',
        { name: 'a' },
        { resourceAttributes: inside },
        /metadata: Invalid value: .*: must be empty except for namespace/,
      ],
      [
        '/subjectaccessreviews',
        'SubjectAccessReview',
        { creationTimestamp: null },
        { resourceAttributes: inside },
        undefined,
      ],
      [
        '/subjectaccessreviews',
        'SubjectAccessReview',
        { labels: { a: 'b' } },
        { resourceAttributes: inside },
        /metadata: Invalid value: .*: must be empty/,
      ],
    ];
    for (const [path, kind, metadata, spec, refusal] of cases) {
      const { code, body } = await server.call<{ message: string }>('POST', `/apis/${group}${path}`, {
        body: { apiVersion: group, kind, metadata, spec: { user: 'ann', ...spec } },
      });
      assert.equal(
        code,
        refusal === undefined ? 201 : 422,
        `${path} ${JSON.stringify([metadata, spec])}: ${body.message}`,
      );
      if (refusal !== undefined) assert.match(body.message, refusal);
    }
  });

  it('a review reports which authorizer denied and which failed; a failure rejects the request', async () => {
    const denied = await review({ verb: 'get', resource: 'pods', namespace: 'denied' });
    assert.deepEqual(denied.status, { allowed: false, denied: true, reason: 'never' });
    const broken = await review({ verb: 'get', resource: 'pods', namespace: 'broken' });
    assert.equal(broken.status['allowed'], false);
    assert.match(String(broken.status['evaluationError']), /invalid character/);
    const ann = await server.user('ann', 'dev');
    const codes: number[] = [];
    for (const namespace of ['denied', 'broken', 'barred', 'default']) {
      recorded.length = 0;
      codes.push((await server.call('GET', `/api/v1/namespaces/${namespace}/pods/none`, { as: ann })).code);
      const annotations = recorded.at(-1)?.['annotations'] as Record<string, string>;
      const decision = annotations['authorization.k8s.io/decision'];
      const expected = { denied: 'forbid', broken: undefined, barred: 'forbid', default: 'allow' }[namespace];
      assert.equal(decision, expected, namespace);
      if (namespace === 'broken') assert.equal(annotations['authorization.k8s.io/reason'], 'internal error');
      else assert.match(annotations['authorization.k8s.io/reason'] ?? '', /never|by webhook/);
    }
    assert.deepEqual(codes, [403, 500, 403, 404]);
  });

  it('counts decisions of authorizers in metrics', async () => {
    const { text } = await server.call('GET', '/metrics');
    const counts = new Map(
      text
        .split('\n')
        .filter((line) => line.startsWith('apiserver_authorization_'))
        .map((line) => line.slice('apiserver_authorization_'.length).split(' ') as [string, string]),
    );
    for (const [series, least] of [
      ['decisions_total{decision="denied",name="deny",type="Webhook"}', 2],
      ['decisions_total{decision="allowed",name="answer",type="Webhook"}', 2],
      ['decisions_total{decision="allowed",name="node",type="Node"}', 1],
      ['webhook_evaluations_total{name="broken",result="error"}', 2],
      ['webhook_evaluations_fail_open_total{name="broken",result="error"}', 2],
      ['webhook_duration_seconds_count{name="deny",result="success"}', 2],
      ['match_condition_exclusions_total{name="answer",type="Webhook"}', 2],
    ] as const)
      assert.ok(Number(counts.get(series)) >= least, `${series}: ${counts.get(series)}`);
  });

  it('retries an authorization webhook after transient errors, and uses the last result', async () => {
    let left = 2;
    hooks.on('/answer', (_review, response) => {
      if (left > 0) {
        left -= 1;
        response.statusCode = 500;
        return 'soon';
      }
      return JSON.stringify({ status: { allowed: true } });
    });
    assert.equal((await review({ verb: 'get', resource: 'pods' })).status['allowed'], true);
    assert.equal(left, 0);
  });
});
