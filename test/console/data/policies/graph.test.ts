/** Reachability under network policies, compared with a decision about every pair of pods and addresses. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Namespace, Pod } from '../../../../src/api/generated/core/v1.ts';
import type { NetworkPolicy, NetworkPolicySpec } from '../../../../src/api/generated/networking/v1.ts';
import { type GraphNode, type PolicyGraph, policyGraph } from '../../../../src/console/data/policies/graph.ts';
import { allowsPort, PROTOCOLS, portsText } from '../../../../src/console/data/policies/port-set.ts';
import { addressOf, hasAddress, parsePolicy } from '../../../../src/console/data/policies/rules.ts';
import { allowed, type Cluster } from '../../../network/policies/core/oracle.ts';
import { NAMESPACES, randomNamespace, randomPod, randomPolicy, seeded } from '../../../network/policies/core/random.ts';

const NODE = 'n1';
const PORTS = [80, 81, 443, 8080, 8081, 9001, 65_535];
const OUTSIDE = ['10.0.0.0', '192.0.2.1', '192.0.2.200', '203.0.113.9', '2001:db8::1', 'fd00::'];

const ipsOf = ({ status }: Pod): string[] => (status?.podIPs ?? []).map(({ ip }) => ip ?? '');
const keyOf = ({ metadata }: Pod): string => `${metadata?.namespace}/${metadata?.name}`;
const isSix = (address: string): boolean => address.includes(':');

/** Whether a connection is possible over one of the families that both sides have. */
const reaches = (cluster: Cluster, from: readonly string[], to: readonly string[], protocol: string, port: number) =>
  from.some((left) =>
    to.some(
      (right) =>
        isSix(left) === isSix(right) &&
        allowed(cluster, { from: left, to: right, protocol: protocol.toLowerCase(), port }),
    ),
  );

function drawn(graph: PolicyGraph, from: GraphNode, to: GraphNode, protocol: string, port: number): boolean {
  const edge = graph.edges.find((each) => each.from === from.id && each.to === to.id);
  return edge !== undefined && allowsPort(edge.ports, protocol, port);
}

function randomCluster(seed: number): Cluster {
  const random = seeded(seed);
  const pods = Array.from({ length: 9 }, (_, index): Pod => {
    const pod = randomPod(random, index + 1);
    const podIPs = random() < 0.2 ? (pod.status?.podIPs ?? []).slice(0, 1) : pod.status?.podIPs;
    return {
      ...pod,
      metadata: {
        ...pod.metadata,
        ...(random() < 0.5
          ? { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true }] }
          : {}),
      },
      spec: { ...pod.spec, containers: pod.spec?.containers ?? [], nodeName: NODE },
      status: { ...pod.status, ...(podIPs === undefined ? {} : { podIPs }) },
    };
  });
  return {
    node: NODE,
    pods,
    namespaces: NAMESPACES.filter(() => random() < 0.9).map((name) => randomNamespace(random, name)),
    policies: Array.from({ length: Math.floor(random() * 6) }, (_, index) => randomPolicy(random, index)),
  };
}

const combinations = PROTOCOLS.flatMap((protocol) => PORTS.map((port) => ({ protocol, port })));

suite('reachability under network policies', () => {
  test('reachability agrees with the policy decision for every pair of pods on every port, for random policies', () => {
    let open = 0;
    let closed = 0;
    for (let seed = 1; seed <= 300; seed++) {
      const cluster = randomCluster(seed);
      const graph = policyGraph('a', cluster);
      assert.ok(graph !== undefined);
      const nodeOf = (pod: Pod): GraphNode | undefined => graph.nodes.find(({ pods }) => pods.includes(keyOf(pod)));
      for (const left of cluster.pods)
        for (const right of cluster.pods) {
          const [from, to] = [nodeOf(left), nodeOf(right)];
          if (left === right || from === undefined || to === undefined) continue;
          if (left.metadata?.namespace !== 'a' && right.metadata?.namespace !== 'a') continue;
          for (const { protocol, port } of combinations) {
            const expected = reaches(cluster, ipsOf(left), ipsOf(right), protocol, port);
            const text = `seed ${seed}: ${keyOf(left)} to ${keyOf(right)} ${protocol} ${port}`;
            assert.equal(drawn(graph, from, to, protocol, port), expected, text);
            if (expected) open++;
            else closed++;
          }
        }
    }
    assert.ok(open > 10_000 && closed > 10_000, `${open} open, ${closed} closed`);
  });

  test('reachability agrees with the policy decision for addresses outside the cluster, for random policies', () => {
    let compared = 0;
    for (let seed = 1; seed <= 300; seed++) {
      const cluster = randomCluster(seed);
      const graph = policyGraph('a', cluster);
      assert.ok(graph !== undefined);
      const rules = cluster.policies
        .filter(({ metadata }) => metadata?.namespace === 'a')
        .map(parsePolicy)
        .flatMap(({ ingress = [], egress = [] }) => [...ingress, ...egress]);
      const blocks = rules.flatMap(({ peers = [] }) =>
        peers.flatMap((peer) => (peer.kind === 'block' ? peer.block : [])),
      );
      const inBlock = (address: string, block: (typeof blocks)[number]): boolean => {
        const parsed = addressOf(address);
        return parsed !== undefined && hasAddress(block, parsed);
      };
      for (const node of graph.nodes.filter(({ kind }) => kind === 'addresses')) {
        const block = blocks.find(({ id }) => id === node.name);
        const samples = OUTSIDE.filter((address) =>
          block === undefined ? !blocks.some((each) => inBlock(address, each)) : inBlock(address, block),
        );
        assert.ok(block === undefined || samples.length > 0, node.name);
        for (const pod of cluster.pods) {
          const own: GraphNode | undefined = graph.nodes.find(
            ({ kind, pods }) => kind === 'workload' && pods.includes(keyOf(pod)),
          );
          const reachable = samples.filter((each) => ipsOf(pod).some((ip) => isSix(ip) === isSix(each)));
          if (own === undefined || reachable.length === 0) continue;
          for (const { protocol, port } of combinations)
            for (const isSent of [true, false]) {
              const expected = reachable.every((address) => {
                const ends = isSent ? [ipsOf(pod), [address]] : [[address], ipsOf(pod)];
                return reaches(cluster, ends[0] ?? [], ends[1] ?? [], protocol, port);
              });
              const text = `seed ${seed}: ${keyOf(pod)} ${isSent ? 'to' : 'from'} ${node.name} ${protocol} ${port}`;
              const found: boolean = isSent
                ? drawn(graph, own, node, protocol, port)
                : drawn(graph, node, own, protocol, port);
              assert.equal(found, expected, text);
              compared++;
            }
        }
      }
    }
    assert.ok(compared > 10_000, String(compared));
  });

  const labelled = (name: string, namespace: string, labels: Record<string, string>, hash?: string): Pod => ({
    metadata: {
      name,
      namespace,
      labels: { ...labels, ...(hash === undefined ? {} : { 'pod-template-hash': hash }) },
      ...(hash === undefined
        ? {}
        : {
            ownerReferences: [
              {
                apiVersion: 'apps/v1',
                kind: 'ReplicaSet',
                name: `${labels['app']}-${hash}`,
                uid: 'u',
                controller: true,
              },
            ],
          }),
    },
    spec: { containers: [] },
    status: { phase: 'Running', podIP: `10.1.0.${name.length + name.charCodeAt(0)}` },
  });
  const namespaces: Namespace[] = ['shop', 'mon', 'x', 'y'].map((name) => ({ metadata: { name, labels: { name } } }));
  const policy = (name: string, spec: NetworkPolicySpec): NetworkPolicy => ({
    metadata: { name, namespace: 'shop' },
    spec,
  });
  const pods = [
    labelled('db-1', 'shop', { app: 'db' }, 'aa'),
    labelled('db-2', 'shop', { app: 'db' }, 'bb'),
    labelled('web', 'shop', { app: 'web' }),
    labelled('prom', 'mon', { app: 'prom' }),
    labelled('p', 'x', {}),
    labelled('q', 'y', {}),
  ];
  const lines = ({ nodes, edges }: PolicyGraph): string[] => {
    const name = (id: string): string => nodes.find((each) => each.id === id)?.name ?? '';
    return edges.map(({ from, to, ports }) => `${name(from)} → ${name(to)}: ${portsText(ports)}`).sort();
  };

  test('without policies, every group reaches every peer, and peers with equal behaviour are combined', () => {
    const graph = policyGraph('shop', { pods, namespaces, policies: [] });
    assert.deepEqual(
      graph?.nodes.map(({ kind, name, pods: members }) => [kind, name, members.length]),
      [
        ['workload', 'app=web', 1],
        ['workload', 'db (Deployment)', 2],
        ['pods', 'namespaces mon, x, y', 3],
        ['addresses', 'addresses outside the cluster', 0],
      ],
    );
    assert.equal(graph?.edges.length, 11);
    assert.ok(graph?.edges.every(({ ports }) => ports === 'all'));
  });

  test('the graph of a denied namespace contains only the connections that its policies permit', () => {
    const graph = policyGraph('shop', {
      pods,
      namespaces,
      policies: [
        policy('deny', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] }),
        policy('db', {
          podSelector: { matchLabels: { app: 'db' } },
          ingress: [
            { from: [{ podSelector: { matchLabels: { app: 'web' } } }], ports: [{ port: 5432, endPort: 5434 }] },
            { from: [{ namespaceSelector: { matchLabels: { name: 'mon' } } }], ports: [{ port: 9187 }] },
            { from: [{ ipBlock: { cidr: '192.0.2.0/24', except: ['192.0.2.128/25'] } }] },
          ],
        }),
        policy('web', {
          podSelector: { matchLabels: { app: 'web' } },
          policyTypes: ['Egress'],
          egress: [
            {
              to: [{ podSelector: { matchLabels: { app: 'db' } } }],
              ports: [{ port: 5433 }, { port: 53, protocol: 'UDP' }],
            },
          ],
        }),
      ],
    });
    assert.ok(graph !== undefined);
    assert.deepEqual(lines(graph), [
      '192.0.2.0/24 except 192.0.2.128/25 → db (Deployment): all',
      'app=web → db (Deployment): TCP 5433',
      'namespace mon → db (Deployment): TCP 9187',
    ]);
    assert.deepEqual(graph.nodes[1]?.policies, { ingress: ['deny', 'db'], egress: ['deny'] });
    assert.ok(graph.nodes.some(({ name }) => name === 'namespaces x, y'));
  });

  test('host-network pods and pods without an address are counted, but not grouped', () => {
    const graph = policyGraph('shop', {
      pods: [
        {
          metadata: { name: 'h', namespace: 'shop' },
          spec: { containers: [], hostNetwork: true },
          status: { podIP: '10.9.0.1' },
        },
        { metadata: { name: 'n', namespace: 'shop' }, spec: { containers: [] }, status: { phase: 'Pending' } },
      ],
      namespaces,
      policies: [],
    });
    assert.deepEqual([graph?.hostNetworkPods, graph?.pendingPods, graph?.edges], [1, 1, []]);
  });

  test('reachability is not computed above a limit of policies and pods', () => {
    const rule = {
      from: Array.from({ length: 500 }, (_, index) => ({
        ipBlock: { cidr: `10.2.${index % 250}.0/${24 + (index % 8)}` },
      })),
    };
    const policies = Array.from({ length: 20 }, (_, index) =>
      policy(`p${index}`, { podSelector: {}, ingress: [rule] }),
    );
    const many = Array.from({ length: 60_000 }, (_, index) => labelled(`a${index}`, 'shop', { app: 'a' }));
    assert.equal(policyGraph('shop', { pods: many, namespaces, policies }), undefined);
  });
});
