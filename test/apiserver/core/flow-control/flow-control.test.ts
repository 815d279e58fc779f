import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  mandatoryLevels,
  mandatorySchemas,
  suggestedLevels,
  suggestedSchemas,
} from '../../../../src/api/flow-control/defaults.ts';
import type { FlowSchema, PriorityLevelConfiguration } from '../../../../src/api/generated/flowcontrol/v1.ts';
import { FlowControl } from '../../../../src/apiserver/core/flow-control/flow-control.ts';
import { FlowRequest } from '../../../../src/apiserver/core/flow-control/flow-queue.ts';
import type { Requester, RequestTarget } from '../../../../src/apiserver/core/flow-control/types.ts';
import { ONE_SEAT } from '../../../../src/apiserver/core/flow-control/work-estimate.ts';

const levels = [...mandatoryLevels, ...suggestedLevels];
const schemas = [...mandatorySchemas, ...suggestedSchemas];

const user = (name: string, ...groups: string[]): Requester => ({ name, groups: [...groups, 'system:authenticated'] });
const account = (namespace: string, name: string): Requester =>
  user(`system:serviceaccount:${namespace}:${name}`, 'system:serviceaccounts', `system:serviceaccounts:${namespace}`);
const node = user('system:node:a', 'system:nodes');
const someone = user('someone');

function resource(verb: string, path: string, namespace = ''): RequestTarget {
  const [group = '', plural = '', subresource = ''] = path.split('/');
  return { resource: true, verb, group, plural, subresource, namespace };
}
const path = (text: string, verb = 'get'): RequestTarget => ({ resource: false, verb, path: text });

function usual(nowMs = 0): FlowControl<string> {
  const flows = new FlowControl<string>(600, nowMs);
  flows.configure(levels, schemas, nowMs);
  return flows;
}

const levelOf = (flows: FlowControl<string>, name: string) => {
  const found = [...flows.levels()].find((each) => each.name === name);
  assert.ok(found !== undefined);
  return found;
};

/** Classifies a request and lets it arrive, as the API server does. */
function bring(flows: FlowControl<string>, who: Requester, what: RequestTarget, owner: string, nowMs: number) {
  return flows.arrive(owner, flows.classify(who, what), who.name, ONE_SEAT, nowMs);
}

describe('classification of requests', () => {
  const flows = usual();
  const cases: readonly (readonly [Requester, RequestTarget, schema: string])[] = [
    [user('admin', 'system:masters'), resource('delete', '/pods', 'x'), 'exempt'],
    [node, resource('update', 'coordination.k8s.io/leases', 'kube-node-lease'), 'system-node-high'],
    [node, resource('patch', '/nodes/status'), 'system-node-high'],
    [node, resource('get', '/nodes/proxy'), 'system-nodes'],
    [node, resource('list', '/pods'), 'system-nodes'],
    [someone, path('/healthz'), 'probes'],
    [{ name: 'system:anonymous', groups: ['system:unauthenticated'] }, path('/livez'), 'probes'],
    [someone, path('/healthz/etcd'), 'global-default'],
    [user('system:kube-scheduler'), resource('update', 'coordination.k8s.io/leases', 'x'), 'system-leader-election'],
    [user('system:kube-scheduler'), resource('patch', 'coordination.k8s.io/leases', 'x'), 'kube-scheduler'],
    [user('system:kube-controller-manager'), resource('update', '/endpoints', 'x'), 'endpoint-controller'],
    [user('system:kube-controller-manager'), resource('list', '/pods'), 'kube-controller-manager'],
    [account('kube-system', 'endpoint-controller'), resource('create', '/endpoints', 'x'), 'endpoint-controller'],
    [account('kube-system', 'any'), resource('get', 'coordination.k8s.io/leases', 'x'), 'system-leader-election'],
    [account('kube-system', 'any'), resource('update', '/configmaps', 'x'), 'workload-leader-election'],
    [account('kube-system', 'any'), resource('list', '/configmaps', 'x'), 'kube-system-service-accounts'],
    [account('default', 'any'), resource('list', '/configmaps', 'x'), 'service-accounts'],
    [someone, resource('create', '/pods', 'x'), 'global-default'],
    [{ name: 'nobody', groups: [] }, resource('get', '/pods', 'x'), 'catch-all'],
  ];
  for (const [who, what, expected] of cases) {
    const request = what.resource ? `${what.verb} ${what.group}/${what.plural} ${what.subresource}` : what.path;
    it(`${who.name}: ${request} → ${expected}`, () => assert.equal(flows.classify(who, what).name, expected));
  }

  it('flow schemas match by precedence, then by name; schemas without a priority level are skipped', () => {
    const schema = (name: string, matchingPrecedence: number, level: string, urls: string[]): FlowSchema => ({
      metadata: { name },
      spec: {
        matchingPrecedence,
        priorityLevelConfiguration: { name: level },
        rules: [
          {
            subjects: [{ kind: 'User', user: { name: '*' } }],
            nonResourceRules: [{ verbs: ['get'], nonResourceURLs: urls }],
          },
        ],
      },
    });
    const own = [
      schema('b', 20, 'system', ['/x/*']),
      schema('a', 20, 'system', ['/x/y']),
      schema('lost', 3, 'nowhere', ['/x/*']),
    ];
    const other = usual();
    const states = other.configure(levels, [...schemas, ...own], 0);
    assert.equal(other.classify(someone, path('/x/y')).name, 'a');
    assert.equal(other.classify(someone, path('/x/z')).name, 'b');
    assert.equal(other.classify(someone, path('/x')).name, 'global-default');
    assert.deepEqual(
      states.filter(({ dangling }) => dangling).map(({ name, level }) => [name, level]),
      [['lost', 'nowhere']],
    );
  });
});

describe('seats of priority levels', () => {
  it("the seats of priority levels equal upstream's for a total of 600", () => {
    const nominal = [...usual().levels()].map(({ name, limits }) => [name, limits.nominal, limits.min]);
    assert.deepEqual(Object.fromEntries(nominal.map(([name, ...rest]) => [name, rest])), {
      exempt: [0, 0],
      'catch-all': [13, 13],
      system: [74, 50],
      'node-high': [98, 73],
      'leader-election': [25, 25],
      'workload-high': [98, 49],
      'workload-low': [245, 24],
      'global-default': [49, 24],
    });
    const most = [...usual().levels()].map(({ name, maxSeats }) => [name, maxSeats]);
    assert.equal(Object.fromEntries(most)['global-default'], 8);
    assert.equal(Object.fromEntries(most)['leader-election'], 4);
  });

  it('seats of priority levels are lent to levels with demand every ten seconds, and returned', () => {
    const flows = usual();
    const low = levelOf(flows, 'workload-low');
    const before = low.queues.limit;
    const accounts = account('default', 'flood');
    for (let id = 0; id < 300; id++) bring(flows, accounts, resource('create', '/pods', 'x'), String(id), 0);
    flows.adjust(10_000);
    assert.ok(low.queues.limit >= 245, `from ${before} to ${low.queues.limit}`);
    for (const level of flows.levels()) {
      const { limit } = level.queues;
      assert.ok(limit >= level.limits.min && limit <= level.limits.max, level.name);
    }
    const sum = [...flows.levels()].reduce((all, { queues }) => all + queues.limit, 0);
    assert.ok(Math.abs(sum - 602) <= 4, `${sum} in all`);
    const nodes = levelOf(flows, 'node-high');
    assert.ok(nodes.queues.limit >= nodes.limits.min);
    for (let id = 0; id < 90; id++)
      bring(flows, node, resource('update', 'coordination.k8s.io/leases', 'x'), `n${id}`, 10_000);
    flows.adjust(20_000);
    assert.ok(nodes.queues.limit >= 90, `${nodes.queues.limit} for those who use what is theirs`);
  });

  it('seats of priority levels of a removed level remain until its requests have finished', () => {
    const own: PriorityLevelConfiguration = {
      metadata: { name: 'own' },
      spec: {
        type: 'Limited',
        limited: {
          nominalConcurrencyShares: 1,
          lendablePercent: 0,
          borrowingLimitPercent: 0,
          limitResponse: { type: 'Queue', queuing: { queues: 4, handSize: 2, queueLengthLimit: 10 } },
        },
      },
    };
    const schema: FlowSchema = {
      metadata: { name: 'own' },
      spec: {
        matchingPrecedence: 5,
        priorityLevelConfiguration: { name: 'own' },
        rules: [
          {
            subjects: [{ kind: 'User', user: { name: 'someone' } }],
            nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
          },
        ],
      },
    };
    const flows = usual();
    flows.configure([...levels, own], [...schemas, schema], 0);
    const level = levelOf(flows, 'own');
    assert.equal(level.limits.max, level.limits.nominal);
    const requests = Array.from({ length: level.queues.limit + 1 }, (_, id) =>
      bring(flows, someone, path('/x'), `own ${id}`, 0),
    );
    assert.equal(level.queues.waiting, 1);
    flows.configure(levels, schemas, 1);
    assert.equal(level.quiescing, true);
    assert.equal(flows.classify(someone, path('/x')).name, 'global-default');
    for (const each of requests) {
      assert.ok(each instanceof FlowRequest);
      flows.finish(each, 2);
    }
    flows.endTurn(2);
    const last = flows.dispatch(2);
    assert.equal(last?.level, level);
    assert.ok(last !== undefined);
    flows.finish(last, 3);
    flows.endTurn(3);
    flows.adjust(10);
    assert.ok(![...flows.levels()].some(({ name }) => name === 'own'));
  });

  it('seats of priority levels exist for administrators and all other users before the first configuration', () => {
    const flows = new FlowControl<string>(600, 0);
    assert.equal(flows.classify(user('admin', 'system:masters'), resource('get', '/pods')).level.name, 'exempt');
    const { level } = flows.classify(someone, resource('get', '/pods'));
    assert.equal(level.name, 'catch-all');
    const answers = Array.from({ length: 700 }, (_, id) => bring(flows, someone, resource('get', '/pods'), `${id}`, 0));
    assert.equal(answers.filter((each) => each === 'concurrency-limit').length, 700 - level.queues.limit);
    for (let id = 0; id < 700; id++) {
      const exempt = bring(flows, user('admin', 'system:masters'), resource('get', '/pods'), `a${id}`, 0);
      assert.ok(exempt instanceof FlowRequest && exempt.state === 'executing');
    }
  });
});

describe('event-loop turns', () => {
  const list = resource('list', '/pods');
  const beat = resource('update', 'coordination.k8s.io/leases', 'kube-node-lease');
  const state = (request: FlowRequest<string> | string): string =>
    typeof request === 'string' ? request : request.state;

  it('event-loop turns keep seats occupied until the turn ends, even of finished requests', () => {
    const flows = usual();
    const { limit } = levelOf(flows, 'global-default').queues;
    for (let id = 0; id < limit; id++) {
      const request = bring(flows, someone, list, `${id}`, 0);
      assert.ok(request instanceof FlowRequest && request.state === 'executing');
      flows.finish(request, 0);
    }
    assert.equal(state(bring(flows, someone, list, 'late', 0)), 'waiting');
    assert.equal(flows.dispatch(0), undefined);
    flows.endTurn(1);
    assert.equal(flows.dispatch(1)?.owner, 'late');
  });

  it('a long event-loop turn starts no further request of the busiest priority level, but starts heartbeats', () => {
    const flows = usual();
    assert.equal(state(bring(flows, someone, list, 'first', 0)), 'executing');
    assert.equal(state(bring(flows, someone, list, 'second', 1)), 'executing');
    assert.equal(state(bring(flows, someone, list, 'third', 3)), 'waiting');
    assert.equal(state(bring(flows, node, beat, 'beat', 3)), 'executing');
    assert.equal(state(bring(flows, user('admin', 'system:masters'), list, 'admin', 4)), 'executing');
    assert.equal(flows.dispatch(4), undefined);
    assert.equal(flows.pressed, true);
    flows.endTurn(5);
    assert.equal(flows.dispatch(5)?.owner, 'third');
    assert.equal(flows.dispatch(5), undefined);
    assert.equal(flows.pressed, false);
  });

  it('event-loop turns serve priority levels in turn, so that a level with few requests waits only shortly', () => {
    const flows = usual();
    bring(flows, someone, list, 'begins', 0);
    bring(flows, node, beat, 'begins', 0);
    for (let id = 0; id < 100; id++) bring(flows, someone, list, `flood ${id}`, 6);
    for (let id = 0; id < 3; id++) bring(flows, node, beat, `beat ${id}`, 6);
    flows.endTurn(7);
    const order = Array.from({ length: 6 }, (_, step) => flows.dispatch(7 + step / 10)?.owner.split(' ')[0]);
    assert.ok(order.filter((each) => each === 'beat').length >= 2, order.join());
  });

  it('requests that wait only for seats schedule no further event-loop turn', () => {
    const flows = usual();
    const { limit } = levelOf(flows, 'global-default').queues;
    for (let id = 0; id <= limit; id++) bring(flows, someone, list, `${id}`, 0);
    flows.endTurn(1);
    assert.equal(flows.dispatch(1), undefined);
    assert.equal(flows.pressed, false);
  });

  it('event-loop turns end the wait of disconnected clients and expired requests', () => {
    const flows = usual();
    const { limit } = levelOf(flows, 'global-default').queues;
    for (let id = 0; id < limit; id++) bring(flows, someone, list, `${id}`, 0);
    const left = bring(flows, someone, list, 'left', 1);
    const late = bring(flows, someone, list, 'late', 2);
    const patient = bring(flows, someone, list, 'patient', 100);
    assert.ok(left instanceof FlowRequest && late instanceof FlowRequest);
    flows.cancel(left, 3);
    assert.equal(left.state, 'gone');
    assert.equal(flows.oldestMs, 2);
    assert.deepEqual(
      flows.expire(2, 15_002).map(({ owner }) => owner),
      ['late'],
    );
    assert.equal(state(patient), 'waiting');
    const { rejected } = flows.classify(someone, list).counters;
    assert.deepEqual(rejected, { 'queue-full': 0, 'concurrency-limit': 0, 'time-out': 1, cancelled: 1 });
  });

  it('event-loop turns reject requests if the queues of their flow are full', () => {
    const flows = usual();
    const { limit } = levelOf(flows, 'global-default').queues;
    const room = limit + 6 * 50;
    const answers = Array.from({ length: room + 10 }, (_, id) => bring(flows, someone, list, `${id}`, 0));
    assert.equal(answers.filter((each) => each === 'queue-full').length, 10);
    assert.notEqual(bring(flows, user('another'), list, 'other', 0), 'queue-full', 'others have queues of their own');
  });

  it('event-loop turns keep the final seats of writes for their watch events', () => {
    const flows = usual();
    const work = { initialSeats: 1, finalSeats: 4, additionalLatencyMs: 5 };
    const of = flows.classify(someone, list);
    const request = flows.arrive('write', of, 'someone', work, 0);
    assert.ok(request instanceof FlowRequest);
    flows.finish(request, 2);
    assert.deepEqual(flows.endTurn(2), [request]);
    assert.equal(of.level.queues.seatsInUse, 4);
    assert.equal(of.level.queues.idle, false);
    flows.release(request, 7);
    flows.release(request, 7);
    assert.equal(of.level.queues.seatsInUse, 0);
    assert.equal(of.level.queues.idle, true);
  });
});
