import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Namespace, Pod } from '../../../../src/api/generated/core/v1.ts';
import type { NetworkPolicy } from '../../../../src/api/generated/networking/v1.ts';
import { policyPodOf } from '../../../../src/network/policies/core/compile.ts';
import { PolicyPlanner } from '../../../../src/network/policies/core/planner.ts';
import { allowed } from './oracle.ts';
import { NAMESPACES, pick, randomNamespace, randomPacket, randomPod, randomPolicy, seeded } from './random.ts';
import { Table } from './table.ts';

const newPlanner = (): PolicyPlanner => new PolicyPlanner({ table: 'he-policy', nodeName: 'n1' });
const PODS = 12;

function report(planner: PolicyPlanner, pod: Pod): void {
  const found = policyPodOf(pod);
  if (found === undefined) planner.deletePod(`${pod.metadata?.namespace}/${pod.metadata?.name}`);
  else planner.setPod(found);
}

test('allows exactly the connections that the NetworkPolicy documentation specifies, after random changes', () => {
  let decided = 0;
  let denied = 0;
  for (let seed = 1; seed <= 60; seed++) {
    const random = seeded(seed);
    const policies = new Map<string, NetworkPolicy>();
    const namespaces = new Map<string, Namespace>();
    const pods = new Map<number, Pod>();
    const planner = newPlanner();
    const table = new Table();
    const change = (): void => {
      const chance = random();
      if (chance < 0.35) {
        const index = 1 + Math.floor(random() * PODS);
        const old = pods.get(index);
        const pod = randomPod(random, index);
        const moved = old !== undefined && old.metadata?.namespace !== pod.metadata?.namespace;
        if (moved || (old !== undefined && random() < 0.3)) {
          planner.deletePod(`${old.metadata?.namespace}/${old.metadata?.name}`);
          pods.delete(index);
          if (!moved) return;
        }
        pods.set(index, pod);
        report(planner, pod);
      } else if (chance < 0.8) {
        const policy = randomPolicy(random, Math.floor(random() * 3));
        const key = `${policy.metadata?.namespace}/${policy.metadata?.name}`;
        if (random() < 0.3) {
          policies.delete(key);
          planner.deletePolicy(key);
        } else {
          policies.set(key, policy);
          planner.setPolicy(policy);
        }
      } else {
        const name = pick(random, NAMESPACES);
        const namespace = randomNamespace(random, name);
        if (random() < 0.1) {
          namespaces.delete(name);
          planner.deleteNamespace(name);
        } else {
          namespaces.set(name, namespace);
          planner.setNamespace(name, namespace.metadata?.labels ?? {});
        }
      }
    };
    for (let round = 0; round < 60; round++) {
      for (let times = 1 + Math.floor(random() * 4); times > 0; times--) change();
      if (random() < 0.05) planner.reset();
      table.apply(planner.program());
      assert.equal(planner.program(), '');
      const cluster = {
        node: 'n1',
        policies: [...policies.values()],
        namespaces: [...namespaces.values()],
        pods: [...pods.values()],
      };
      for (let each = 0; each < 40; each++) {
        const packet = randomPacket(random, PODS);
        const passes = table.passes(packet);
        decided++;
        if (!passes) denied++;
        assert.equal(passes, allowed(cluster, packet), `seed ${seed} round ${round} ${JSON.stringify(packet)}`);
      }
    }
    // Deleted objects leave nothing behind.
    const fresh = newPlanner();
    for (const { metadata } of namespaces.values()) fresh.setNamespace(metadata?.name ?? '', metadata?.labels ?? {});
    for (const pod of pods.values()) report(fresh, pod);
    for (const policy of policies.values()) fresh.setPolicy(policy);
    const other = new Table();
    other.apply(fresh.program());
    assert.equal(table.chains.size, other.chains.size);
    assert.equal(table.sets.size, other.sets.size);
  }
  assert.ok(denied > decided / 20 && denied < decided / 2, `${denied} of ${decided} denied`);
});

const pod = (name: string, app: string, node: string, ip?: string): Pod => ({
  metadata: { namespace: 'a', name, labels: { app } },
  spec: { nodeName: node, containers: [{ name: 'c', ports: [{ name: 'web', containerPort: 8080 }] }] },
  status: ip === undefined ? {} : { podIPs: [{ ip }] },
});
const toDb: NetworkPolicy = {
  metadata: { namespace: 'a', name: 'db' },
  spec: {
    podSelector: { matchLabels: { app: 'db' } },
    ingress: [{ from: [{ podSelector: { matchLabels: { app: 'api' } } }], ports: [{ port: 5432 }] }],
  },
};

test('a new pod adds set elements, but no rules, to the network policy program', () => {
  const planner = newPlanner();
  planner.setPolicy(toDb);
  for (let index = 0; index < 100; index++) report(planner, pod(`api${index}`, 'api', 'n2', `10.0.1.${index}`));
  report(planner, pod('db', 'db', 'n1', '10.0.0.1'));
  assert.match(planner.program(), /add rule/);
  report(planner, pod('api-new', 'api', 'n2', '10.0.2.1'));
  assert.match(planner.program(), /^add element inet he-policy s\d+_4 \{ 10\.0\.2\.1 \}\n$/);
  report(planner, pod('db2', 'db', 'n1', '10.0.0.2'));
  const lines = planner.program().trim().split('\n').sort();
  assert.deepEqual(
    lines.map((line) => line.replace(/jump g\d+/, 'jump g')),
    [
      'add element inet he-policy ingress4 { 10.0.0.2 : jump g }',
      'add element inet he-policy self4 { 10.0.0.2 . 10.0.0.2 }',
    ],
  );
  report(planner, pod('other', 'other', 'n1', '10.0.0.3'));
  assert.equal(planner.program(), '');
});

test('filters an attached pod before the API reports its address, and drops its traffic until its labels are known', () => {
  const planner = newPlanner();
  const table = new Table();
  const passes = (from: string, to: string): boolean => {
    table.apply(planner.program());
    return table.passes({ from, to, protocol: 'tcp', port: 5432 });
  };
  planner.setPolicy(toDb);
  report(planner, pod('api', 'api', 'n2', '10.0.1.1'));
  planner.attach('a', 'db', ['10.0.0.1']);
  assert.ok(planner.isIsolated('a', 'db'));
  assert.equal(passes('10.0.1.1', '10.0.0.1'), false);
  report(planner, pod('db', 'db', 'n1'));
  assert.equal(passes('10.0.1.1', '10.0.0.1'), true);
  assert.equal(passes('10.0.1.2', '10.0.0.1'), false);
  // The pod is force-deleted while its sandbox still exists.
  planner.deletePod('a/db');
  assert.equal(passes('10.0.1.1', '10.0.0.1'), false);
  planner.detach('a', 'db');
  assert.equal(passes('10.0.1.1', '10.0.0.1'), true);
  planner.attach('b', 'free', ['10.0.0.9']);
  assert.equal(planner.isIsolated('b', 'free'), false);
});

test('applies policies to the attached pod when the API still reports a former pod with the same address', () => {
  const planner = newPlanner();
  const table = new Table();
  planner.setPolicy(toDb);
  report(planner, pod('old', 'db', 'n1', '10.0.0.1'));
  report(planner, pod('new', 'other', 'n1'));
  planner.attach('a', 'new', ['10.0.0.1']);
  report(planner, pod('new', 'other', 'n1', '10.0.0.1'));
  table.apply(planner.program());
  const packet = { from: '10.0.1.2', to: '10.0.0.1', protocol: 'tcp', port: 5432 };
  assert.equal(table.passes(packet), true);
  planner.deletePod('a/old');
  report(planner, pod('new', 'db', 'n1', '10.0.0.1'));
  table.apply(planner.program());
  assert.equal(table.passes(packet), false);
});

test('an invalid policy allows nothing, and no text of a user is copied to nftables programs', () => {
  const planner = newPlanner();
  const hostile = '10.0.0.9 }; delete table inet he-policy; #';
  planner.setPolicy({
    metadata: { namespace: 'a', name: 'x"; flush ruleset' },
    spec: {
      podSelector: {},
      ingress: [
        { from: [{ ipBlock: { cidr: hostile } }, { ipBlock: { cidr: '10.0.0.0/8', except: [hostile] } }] },
        { from: [{ ipBlock: { cidr: '10.0.0.0/8' } }], ports: [{ port: hostile }] },
        { from: [{ podSelector: { matchExpressions: [{ key: 'a', operator: hostile }] } }] },
      ],
    },
  });
  report(planner, pod('db', 'db', 'n1', '10.0.0.1'));
  report(planner, pod('evil', 'db', 'n1', hostile));
  const program = planner.program();
  assert.doesNotMatch(program, /;#|ruleset|10\.0\.0\.9/);
  const table = new Table();
  table.apply(program);
  assert.equal(table.passes({ from: '10.0.0.2', to: '10.0.0.1', protocol: 'tcp', port: 80 }), false);
});

/** A policy for all pods of the namespace that permits connections to `count` addresses. */
const toAddresses = (namespace: string, name: string, count: number): NetworkPolicy => ({
  metadata: { namespace, name },
  spec: {
    podSelector: {},
    policyTypes: ['Egress'],
    egress: [
      { to: Array.from({ length: count }, (_, at) => ({ ipBlock: { cidr: `192.0.${at >> 8}.${at & 255}/32` } })) },
    ],
  },
});

test('creates one rule for a network policy with many address blocks', () => {
  const planner = newPlanner();
  planner.attach('a', 'x', ['10.128.0.9']);
  report(planner, { metadata: { namespace: 'a', name: 'x' }, spec: { containers: [], nodeName: 'n1' } });
  planner.setPolicy(toAddresses('a', 'many', 10_000));
  assert.equal(planner.program().match(/ ip daddr [{\d].* accept$/gm)?.length, 1);
});

test('adds no rules for policies beyond the size limit of a namespace, and leaves other namespaces unchanged', () => {
  const planner = newPlanner();
  for (const [index, namespace] of ['a', 'b'].entries()) {
    planner.attach(namespace, 'x', [`10.128.0.${index}`]);
    report(planner, { metadata: { namespace, name: 'x' }, spec: { containers: [], nodeName: 'n1' } });
  }
  planner.setPolicy(toAddresses('a', 'first', 15_000));
  planner.setPolicy(toAddresses('a', 'second', 15_000));
  planner.setPolicy(toAddresses('b', 'small', 2));
  assert.deepEqual([...planner.oversized], ['a/second']);
  assert.equal(planner.program().match(/ ip daddr [{\d].* accept$/gm)?.length, 2);
  assert.ok(planner.isIsolated('a', 'x'));
  planner.setPolicy(toAddresses('a', 'third', 100_000));
  assert.deepEqual([...planner.oversized].sort(), ['a/second', 'a/third']);
  planner.deletePolicy('a/first');
  assert.deepEqual([...planner.oversized], ['a/third']);
});

/** A policy that selects the pods without the label `x: NAME` and permits traffic from pods with a label of its own. */
const fromLabel = (name: string): NetworkPolicy => ({
  metadata: { namespace: 'a', name },
  spec: {
    podSelector: { matchExpressions: [{ key: 'x', operator: 'NotIn', values: [name] }] },
    ingress: [{ from: [{ podSelector: { matchLabels: { from: name } } }] }],
  },
});

test('plans a namespace with thousands of policies quickly, and adds one more policy quickly', () => {
  const planner = newPlanner();
  for (let index = 0; index < 100; index++) report(planner, pod(`p${index}`, 'app', 'n1', `10.0.0.${index}`));
  const start = performance.now();
  for (let index = 0; index < 3000; index++) planner.setPolicy(fromLabel(`p${String(index).padStart(4, '0')}`));
  const program = planner.program();
  // An implementation that places every pod again for each policy takes a minute for 1000 policies.
  assert.ok(performance.now() - start < 30_000, `${performance.now() - start} ms`);
  assert.equal(program.match(/^add rule .* jump p\d+$/gm)?.length, 2000);
  assert.equal(planner.oversized.size, 1000);
  assert.ok(planner.isIsolated('a', 'p1'));
  planner.setPolicy(fromLabel('p0000'));
  assert.equal(planner.program(), '');
});

test('limits the rules of pods with different policies, and isolates pods whose policies exceed the limit', () => {
  const planner = newPlanner();
  for (let index = 0; index < 2000; index++) planner.setPolicy(fromLabel(`b${String(index).padStart(4, '0')}`));
  const only: NetworkPolicy = {
    metadata: { namespace: 'a', name: 'c' },
    spec: { podSelector: { matchLabels: { app: 'db' } }, policyTypes: ['Egress'], egress: [{}] },
  };
  planner.setPolicy(only);
  report(planner, pod('db', 'db', 'n1', '10.0.0.1'));
  const table = new Table();
  table.apply(planner.program());
  assert.deepEqual([...planner.oversized], ['a/c']);
  assert.equal(table.passes({ from: '10.0.0.1', to: '10.9.9.9', protocol: 'tcp', port: 1 }), false);
  planner.deletePolicy('a/b0000');
  table.apply(planner.program());
  assert.equal(table.passes({ from: '10.0.0.1', to: '10.9.9.9', protocol: 'tcp', port: 1 }), true);
});

const inEveryNamespace = (name: string, namespace: string, count: number, key: string): NetworkPolicy => ({
  metadata: { namespace, name },
  spec: {
    podSelector: {},
    ingress: [
      {
        from: Array.from({ length: count }, (_, index) => ({
          namespaceSelector: {},
          podSelector: { matchExpressions: [{ key, operator: 'NotIn', values: [`${name}${index}`] }] },
        })),
      },
    ],
  },
});

test('matches thousands of policy peers in all namespaces in steps that do not block the event loop', () => {
  const planner = newPlanner();
  planner.setNamespace('a', {});
  for (let index = 0; index < 1000; index++) {
    const node = index === 0 ? 'n1' : 'n2';
    report(planner, pod(`p${index}`, `app${index}`, node, `10.0.${index >> 8}.${index & 255}`));
  }
  const from = Array.from({ length: 5000 }, (_, index) => ({
    namespaceSelector: {},
    podSelector: { matchLabels: { app: `app${index}` } },
  }));
  planner.setPolicy({ metadata: { namespace: 'a', name: 'x' }, spec: { podSelector: {}, ingress: [{ from }] } });
  const steps = planner.programSteps();
  let longestMs = 0;
  let result: IteratorResult<undefined, string>;
  do {
    const beginMs = performance.now();
    result = steps.next();
    longestMs = Math.max(longestMs, performance.now() - beginMs);
  } while (result.done !== true);
  assert.ok(longestMs < 200, `${longestMs} ms`);
  const table = new Table();
  table.apply(result.value);
  assert.ok(table.passes({ from: '10.0.3.231', to: '10.0.0.0', protocol: 'tcp', port: 1 }));
  assert.ok(!table.passes({ from: '10.0.3.232', to: '10.0.0.0', protocol: 'tcp', port: 1 }));
});

test('limits the number of addresses in the sets of a namespace as pods are created and deleted', () => {
  const planner = newPlanner();
  const table = new Table();
  for (const name of ['a', 'b']) {
    planner.setNamespace(name, {});
    planner.attach(name, 'x', [`10.1.0.${name === 'a' ? 1 : 2}`]);
    report(planner, { metadata: { namespace: name, name: 'x' }, spec: { containers: [], nodeName: 'n1' } });
  }
  const other = (index: number): Pod => pod(`p${index}`, 'app', 'n2', `10.0.${index >> 8}.${index & 255}`);
  for (let index = 0; index < 400; index++) report(planner, other(index));
  planner.setPolicy(inEveryNamespace('first', 'a', 2, 'app'));
  planner.setPolicy(inEveryNamespace('second', 'a', 500, 'app'));
  planner.setPolicy(inEveryNamespace('third', 'b', 2, 'app'));
  const oversized = (): string[] => {
    table.apply(planner.program());
    for (const to of ['10.1.0.1', '10.1.0.2'])
      assert.ok(table.passes({ from: '10.0.0.1', to, protocol: 'tcp', port: 1 }), to);
    return [...planner.oversized];
  };
  assert.deepEqual(oversized(), []);
  for (let index = 400; index < 600; index++) report(planner, other(index));
  assert.deepEqual(oversized(), ['a/second']);
  assert.ok(table.sets.size < 20, `${table.sets.size} sets`);
  planner.setPolicy(inEveryNamespace('fourth', 'a', 20_000, 'app'));
  assert.deepEqual(oversized(), ['a/fourth', 'a/second']);
  for (let index = 300; index < 600; index++) planner.deletePod(`a/p${index}`);
  assert.deepEqual(oversized(), ['a/fourth']);
  planner.deletePolicy('a/fourth');
  assert.deepEqual(oversized(), []);
  assert.ok(table.sets.size > 500);
});
