import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { after, before, describe, it } from 'node:test';
import type { FlowSchema, PriorityLevelConfiguration } from '../../../src/api/generated/flowcontrol/v1.ts';
import type { KeyPair } from '../../../src/pki/certificate.ts';
import { slack } from '../../support/slack.ts';
import { type Answer, startServer, type TestServer } from '../harness.ts';

const API = '/apis/flowcontrol.apiserver.k8s.io/v1';
const SCHEMAS = `${API}/flowschemas`;
const LEVELS = `${API}/prioritylevelconfigurations`;
const ANNOTATION = 'apf.kubernetes.io/autoupdate-spec';
const PATH = '/api/v1/namespaces/default/configmaps';

interface List<T> {
  readonly items: readonly T[];
}

async function until(what: string, check: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 20_000 * slack();
  while (!(await check())) {
    assert.ok(performance.now() < end, `not within the time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const merge = (body: unknown) => ({ body, type: 'application/merge-patch+json' });

const levelOf = (
  name: string,
  limited: Partial<NonNullable<NonNullable<PriorityLevelConfiguration['spec']>['limited']>>,
) => ({
  metadata: { name },
  spec: { type: 'Limited', limited: { lendablePercent: 0, borrowingLimitPercent: 0, ...limited } },
});

const schemaOf = (name: string, level: string, user: string) => ({
  metadata: { name },
  spec: {
    priorityLevelConfiguration: { name: level },
    matchingPrecedence: 50,
    distinguisherMethod: { type: 'ByUser' },
    rules: [
      {
        subjects: [{ kind: 'User', user: { name: user } }],
        resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true }],
      },
    ],
  },
});

describe('flow schemas and priority levels', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());

  const schema = async (name: string) => (await server.call<FlowSchema>('GET', `${SCHEMAS}/${name}`)).body;
  const dangling = async (name: string) =>
    (await schema(name)).status?.conditions?.find(({ type }) => type === 'Dangling');

  it('flow schemas and priority levels exist from the start and refer to existing levels', async () => {
    const levels = (await server.call<List<PriorityLevelConfiguration>>('GET', LEVELS)).body.items;
    assert.deepEqual(
      levels.map(({ metadata }) => metadata?.name),
      [
        'catch-all',
        'exempt',
        'global-default',
        'leader-election',
        'node-high',
        'system',
        'workload-high',
        'workload-low',
      ],
    );
    const schemas = (await server.call<List<FlowSchema>>('GET', SCHEMAS)).body.items;
    assert.equal(schemas.length, 13);
    for (const { metadata, status } of schemas) {
      assert.equal(metadata?.annotations?.[ANNOTATION], 'true');
      const [condition, ...others] = status?.conditions ?? [];
      assert.deepEqual([condition?.type, condition?.status, condition?.reason], ['Dangling', 'False', 'Found']);
      assert.deepEqual(others, []);
    }
  });

  it('flow schemas and priority levels are restored after deletion or change', async () => {
    assert.equal((await server.call('DELETE', `${SCHEMAS}/service-accounts`)).code, 200);
    assert.equal((await server.call('DELETE', `${LEVELS}/workload-low`)).code, 200);
    await server.call('PATCH', `${SCHEMAS}/probes`, merge({ spec: { matchingPrecedence: 3 } }));
    await until('deleted objects are back', async () => {
      const answers = await Promise.all(
        [`${SCHEMAS}/service-accounts`, `${LEVELS}/workload-low`].map((path) => server.call('GET', path)),
      );
      return answers.every(({ code }) => code === 200) && (await schema('probes')).spec?.matchingPrecedence === 2;
    });
  });

  it('flow schemas and priority levels keep changes by an administrator, unless they are mandatory', async () => {
    const own = { metadata: { annotations: { [ANNOTATION]: 'false' } }, spec: { matchingPrecedence: 9_100 } };
    await server.call('PATCH', `${SCHEMAS}/service-accounts`, merge(own));
    const refused = await server.call<{ message: string }>('PATCH', `${SCHEMAS}/catch-all`, merge(own));
    assert.equal(refused.code, 422);
    assert.match(refused.body.message, /spec of 'catch-all' must equal the fixed value/);
    const level = { spec: { limited: { nominalConcurrencyShares: 50 } } };
    assert.equal((await server.call('PATCH', `${LEVELS}/catch-all`, merge(level))).code, 422);
    const shares = { metadata: own.metadata, spec: { exempt: { nominalConcurrencyShares: 10 } } };
    assert.equal((await server.call('PATCH', `${LEVELS}/exempt`, merge(shares))).code, 200);
    // When this other object has been restored, the server has completed a reconciliation.
    await server.call('DELETE', `${SCHEMAS}/kube-scheduler`);
    await until(
      'the server has looked',
      async () => (await server.call('GET', `${SCHEMAS}/kube-scheduler`)).code === 200,
    );
    assert.equal((await schema('service-accounts')).spec?.matchingPrecedence, 9_100);
    const exempt = await server.call<PriorityLevelConfiguration>('GET', `${LEVELS}/exempt`);
    assert.equal(exempt.body.spec?.exempt?.nominalConcurrencyShares, 10);
  });

  it('flow schemas and priority levels with the auto-update annotation and an unknown name are deleted', async () => {
    const stray = schemaOf('of-another-time', 'system', 'x');
    const marked = { ...stray, metadata: { ...stray.metadata, annotations: { [ANNOTATION]: 'true' } } };
    assert.equal((await server.call('POST', SCHEMAS, { body: marked })).code, 201);
    await until('the stray is gone', async () => (await server.call('GET', `${SCHEMAS}/of-another-time`)).code === 404);
  });

  it('flow schemas and priority levels have a Dangling condition if their level does not exist', async () => {
    await server.call('POST', SCHEMAS, { body: schemaOf('early', 'later', 'x') });
    await until('it dangles', async () => (await dangling('early'))?.status === 'True');
    assert.equal((await dangling('early'))?.reason, 'NotFound');
    assert.equal(
      (await dangling('early'))?.message,
      'This FlowSchema references the PriorityLevelConfiguration object named "later" but there is no such object',
    );
    const level = levelOf('later', { nominalConcurrencyShares: 1, limitResponse: { type: 'Reject' } });
    assert.equal((await server.call('POST', LEVELS, { body: level })).code, 201);
    await until('it does not dangle any more', async () => (await dangling('early'))?.status === 'False');
  });
});

/** A request whose body does not end until the test ends it, so that it keeps its seat. */
class Held {
  readonly sent: ClientRequest;
  readonly #answer: Promise<IncomingMessage>;
  readonly #rest: string;

  constructor(server: TestServer, who: KeyPair, name: string) {
    const body = JSON.stringify({ metadata: { name } });
    this.#rest = body.slice(5);
    this.sent = request({
      host: '127.0.0.1',
      port: server.port,
      method: 'POST',
      path: PATH,
      ca: server.ca.certPem,
      cert: who.certPem,
      key: who.keyPem,
      agent: false,
      headers: { 'content-type': 'application/json', 'content-length': body.length },
    });
    this.#answer = once(this.sent, 'response').then(([response]) => response as IncomingMessage);
    // A client that disconnects does not await the response.
    this.#answer.catch(() => {});
    this.sent.write(body.slice(0, 5));
  }

  async end(): Promise<number> {
    this.sent.end(this.#rest);
    const response = await this.#answer;
    response.resume();
    return response.statusCode ?? 0;
  }
}

/**
 * Starts a server with two levels of one seat: with a queue of length one for user `queued`, without a queue for
 * `rejected`.
 */
async function startNarrow(requestTimeoutSeconds: number) {
  const server = await startServer({ config: { maxInFlight: { reading: 10, mutating: 10 }, requestTimeoutSeconds } });
  const [queued, rejected] = [await server.user('queued'), await server.user('rejected')];
  const create = async (path: string, body: unknown): Promise<string> => {
    const answer = await server.call<{ metadata: { uid: string } }>('POST', path, { body });
    assert.equal(answer.code, 201, answer.text);
    return answer.body.metadata.uid;
  };
  const queuing = { queues: 1, handSize: 1, queueLengthLimit: 1 };
  await create(LEVELS, levelOf('one-seat', { nominalConcurrencyShares: 1, limitResponse: { type: 'Queue', queuing } }));
  await create(LEVELS, levelOf('no-queue', { nominalConcurrencyShares: 1, limitResponse: { type: 'Reject' } }));
  const uids = [
    await create(SCHEMAS, schemaOf('queued', 'one-seat', 'queued')),
    await create(SCHEMAS, schemaOf('rejected', 'no-queue', 'rejected')),
  ];
  await create('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'both' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: ['queued', 'rejected'].map((name) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name })),
  });
  await until('both levels are in use', async () => {
    const answers = await Promise.all([queued, rejected].map((as) => server.call('GET', PATH, { as })));
    return answers.every(({ headers }, index) => headers['x-kubernetes-pf-flowschema-uid'] === uids[index]);
  });
  return { server, queued, rejected };
}

async function metric(server: TestServer, name: string, ...labels: string[]): Promise<number> {
  const { text } = await server.call('GET', '/metrics');
  const line = text
    .split('\n')
    .find((each) => each.startsWith(`apiserver_flowcontrol_${name}{`) && labels.every((label) => each.includes(label)));
  return Number(line?.split(' ').at(-1) ?? 0);
}

async function held(server: TestServer, who: KeyPair, schema: string, name: string): Promise<Held> {
  const request = new Held(server, who, name);
  const executing = () => metric(server, 'current_executing_requests', `flow_schema="${schema}"`);
  await until('the seat is taken', async () => (await executing()) === 1);
  return request;
}

describe('requests under priority and fairness', () => {
  let server: TestServer;
  let queued: KeyPair;
  let rejected: KeyPair;
  before(async () => {
    ({ server, queued, rejected } = await startNarrow(60));
  });
  after(() => server.stop());

  const uid = async (path: string) => (await server.call<{ metadata: { uid: string } }>('GET', path)).body.metadata.uid;
  const executing = (schema: string) => metric(server, 'current_executing_requests', `flow_schema="${schema}"`);
  const waiting = () => metric(server, 'current_inqueue_requests', 'flow_schema="queued"');

  it('requests under priority and fairness have headers with the UIDs of their flow schema and priority level', async () => {
    const mine = await server.call('GET', PATH, { as: queued });
    assert.equal(mine.headers['x-kubernetes-pf-flowschema-uid'], await uid(`${SCHEMAS}/queued`));
    assert.equal(mine.headers['x-kubernetes-pf-prioritylevel-uid'], await uid(`${LEVELS}/one-seat`));
    const admins = await server.call('GET', '/api/v1/namespaces/none');
    assert.equal(admins.code, 404);
    assert.equal(admins.headers['x-kubernetes-pf-flowschema-uid'], await uid(`${SCHEMAS}/exempt`));
    const probe = await server.call('GET', '/healthz', { as: null });
    assert.equal(probe.headers['x-kubernetes-pf-flowschema-uid'], await uid(`${SCHEMAS}/probes`));
    const watch = await server.call('GET', `${PATH}?watch=true&timeoutSeconds=1`, { as: queued });
    assert.equal(watch.headers['x-kubernetes-pf-flowschema-uid'], await uid(`${SCHEMAS}/queued`));
  });

  it('requests under priority and fairness are rejected at once by a priority level without a queue', async () => {
    const first = await held(server, rejected, 'rejected', 'first');
    const body = { metadata: { name: 'second' } };
    const second = await server.call<{ message: string; reason: string }>('POST', PATH, { as: rejected, body });
    assert.equal(second.code, 429);
    assert.equal(second.headers['retry-after'], '1');
    assert.equal(second.body.message, 'Too many requests, please try again later.');
    assert.equal(second.body.reason, 'TooManyRequests');
    assert.equal(second.headers['x-kubernetes-pf-prioritylevel-uid'], await uid(`${LEVELS}/no-queue`));
    assert.equal((await server.call('GET', PATH)).code, 200, 'administrators get through');
    assert.equal(await first.end(), 201);
    await until('the seat is free', async () => (await executing('rejected')) === 0);
    assert.equal((await server.call('GET', PATH, { as: rejected })).code, 200);
    assert.equal(
      await metric(server, 'rejected_requests_total', 'flow_schema="rejected"', 'reason="concurrency-limit"'),
      1,
    );
  });

  it('requests under priority and fairness wait for a seat in a queue of limited length, and are served in order', async () => {
    const first = await held(server, queued, 'queued', 'third');
    const second = server.call('GET', PATH, { as: queued });
    await until('the second waits', async () => (await waiting()) === 1);
    const third = await server.call('GET', PATH, { as: queued });
    assert.equal(third.code, 429);
    assert.equal(await metric(server, 'rejected_requests_total', 'flow_schema="queued"', 'reason="queue-full"'), 1);

    const dump = async (name: string, query = ''): Promise<string[][]> =>
      (await server.call('GET', `/debug/api_priority_and_fairness/${name}${query}`)).text
        .trimEnd()
        .split('\n')
        .map((line) => line.split(',').map((cell) => cell.trim()))
        .filter(([level], index) => index === 0 || level === 'one-seat');
    const [head, level] = await dump('dump_priority_levels');
    assert.deepEqual(head?.slice(0, 6), [
      'PriorityLevelName',
      'ActiveQueues',
      'IsIdle',
      'IsQuiescing',
      'WaitingRequests',
      'ExecutingRequests',
    ]);
    assert.deepEqual(level?.slice(0, 6), ['one-seat', '1', 'false', 'false', '1', '1']);
    const [, queue] = await dump('dump_queues');
    assert.deepEqual(queue?.slice(0, 5), ['one-seat', '0', '1', '1', '1']);
    const requests = await dump('dump_requests', '?includeRequestDetails=1');
    assert.deepEqual(
      requests.slice(1).map((row) => [row[1], row[2], row[3], row[4], row[10], row[11], row[12], row[16]]),
      [
        ['queued', '0', '0', 'queued', 'queued', 'list', PATH, 'configmaps'],
        ['queued', '0', '-1', 'queued', 'queued', 'create', PATH, 'configmaps'],
      ],
    );
    const forbidden = await server.call('GET', '/debug/api_priority_and_fairness/dump_queues', {
      as: await server.user('curious'),
    });
    assert.equal(forbidden.code, 403);

    assert.equal(await first.end(), 201);
    assert.equal((await second).code, 200);
  });

  it('requests under priority and fairness wait for at most a part of their deadline', async () => {
    const hasty = await startNarrow(8);
    try {
      const first = await held(hasty.server, hasty.queued, 'queued', 'first');
      const began = performance.now();
      const late = await hasty.server.call('GET', PATH, { as: hasty.queued });
      assert.equal(late.code, 429);
      assert.ok(performance.now() - began >= 1_900, 'a quarter of eight seconds');
      const reason = ['flow_schema="queued"', 'reason="time-out"'];
      assert.equal(await metric(hasty.server, 'rejected_requests_total', ...reason), 1);
      first.sent.on('error', () => {});
      first.sent.destroy();
    } finally {
      await hasty.server.stop();
    }
  });

  it('requests under priority and fairness leave the queue when their client disconnects', async () => {
    const first = await held(server, queued, 'queued', 'fifth');
    const second = new Held(server, queued, 'never');
    second.sent.on('error', () => {});
    await until('the second waits', async () => (await waiting()) === 1);
    second.sent.destroy();
    await until('it is gone', async () => (await waiting()) === 0);
    assert.equal(await metric(server, 'rejected_requests_total', 'flow_schema="queued"', 'reason="cancelled"'), 1);
    assert.equal(await first.end(), 201);
    assert.equal((await server.call('GET', `${PATH}/never`)).code, 404);
  });

  it('requests under priority and fairness release the seat of a watch once the watch has started', async () => {
    const watch = request({
      host: '127.0.0.1',
      port: server.port,
      path: `${PATH}?watch=true`,
      ca: server.ca.certPem,
      cert: queued.certPem,
      key: queued.keyPem,
      agent: false,
    });
    watch.end();
    const [response] = (await once(watch, 'response')) as [IncomingMessage];
    response.resume();
    await until('the seat is free', async () => (await executing('queued')) === 0);
    const answers: Answer[] = [];
    for (let count = 0; count < 3; count++) answers.push(await server.call('GET', PATH, { as: queued }));
    assert.deepEqual(
      answers.map(({ code }) => code),
      [200, 200, 200],
    );
    response.on('error', () => {});
    watch.destroy();
  });

  it('a write to a resource with many watches occupies more seats of priority and fairness', async () => {
    const watches = Array.from({ length: 20 }, () =>
      request({
        host: '127.0.0.1',
        port: server.port,
        path: `${PATH}?watch=true`,
        ca: server.ca.certPem,
        cert: server.admin.certPem,
        key: server.admin.keyPem,
        agent: false,
      }),
    );
    await Promise.all(
      watches.map(async (watch) => {
        watch.end();
        const [response] = (await once(watch, 'response')) as [IncomingMessage];
        response.on('error', () => {});
        response.resume();
      }),
    );
    const seats = () => metric(server, 'work_estimated_seats_sum', 'flow_schema="exempt"');
    const events = () => metric(server, 'watch_count_samples_sum', 'flow_schema="exempt"');
    const [before, seen] = [await seats(), await events()];
    await server.call('POST', PATH, { body: { metadata: { name: 'watched' } } });
    // The requests for metrics have one seat each.
    const [after, now] = [await seats(), await events()];
    assert.equal(now - seen, 20);
    assert.equal(after - before, 2 + 2);
    for (const watch of watches) watch.destroy();
  });
});

describe('requests without priority and fairness', () => {
  it('requests without priority and fairness have two fixed limits, which do not apply to administrators', async () => {
    const server = await startServer({
      config: { priorityAndFairness: false, maxInFlight: { reading: 1, mutating: 1 } },
    });
    try {
      const who = await server.user('who');
      await server.call('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
        body: {
          metadata: { name: 'who' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'who' }],
        },
      });
      const first = new Held(server, who, 'first');
      const post = (name: string, as?: KeyPair) =>
        server.call('POST', PATH, { body: { metadata: { name } }, ...(as === undefined ? {} : { as }) });
      let tries = 0;
      await until('the only place is taken', async () => (await post(`try-${tries++}`, who)).code === 429);
      const refused = await post('second', who);
      assert.equal(refused.code, 429);
      assert.equal(refused.headers['retry-after'], '1');
      assert.equal(refused.headers['x-kubernetes-pf-flowschema-uid'], undefined);
      assert.equal((await server.call('GET', PATH, { as: who })).code, 200, 'reading has a limit of its own');
      assert.equal((await post('third')).code, 201);
      assert.equal(await first.end(), 201);
      await until('there is a place', async () => (await post(`again-${tries++}`, who)).code === 201);
      assert.equal((await server.call('GET', '/debug/api_priority_and_fairness/dump_queues')).code, 404);
    } finally {
      await server.stop();
    }
  });
});
