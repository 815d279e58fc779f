import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type OverlayInput,
  overlayChanges,
  type Peer,
  planOverlay,
  tunnelMac,
} from '../../../../src/network/pods/core/index.ts';
import type { Overlay, OverlayChange, PeerPath } from '../../../../src/network/pods/core/port.ts';

const direct = (mtu = 1500): PeerPath => ({ link: 'eth0', gateway: undefined, mtu });
const routed = (mtu = 1500): PeerPath => ({ link: 'eth0', gateway: '192.0.2.1', mtu });
const own: Peer = { node: 'a', addresses: ['192.0.2.10'], podCidrs: ['10.128.0.0/23'] };
const near: Peer = { node: 'b', addresses: ['192.0.2.11'], podCidrs: ['10.128.2.0/23'] };
const far: Peer = { node: 'c', addresses: ['198.51.100.12'], podCidrs: ['10.128.4.0/23'] };

const input = (more: Partial<OverlayInput> = {}): OverlayInput => ({
  own,
  peers: [near, far],
  paths: new Map([
    ['192.0.2.11', direct()],
    ['198.51.100.12', routed()],
  ]),
  backend: 'auto',
  clusterCidrs: ['10.128.0.0/14'],
  tunnelNames: { 4: 'vx4', 6: 'vx6' },
  podLinks: new Set(['hyper0', 'vx4', 'vx6']),
  linkMtu: 1500,
  mtu: undefined,
  ...more,
});

const ways = (plan: Overlay): string[] =>
  plan.routes.map(({ destination, via, mtu }) =>
    via === undefined ? `${destination} unreachable` : `${destination} ${via.gateway}@${via.link} ${mtu}`,
  );

test('backend auto routes directly to hosts on the same link and tunnels to other hosts', () => {
  const { overlay, podMtu, problems } = planOverlay(input());
  assert.deepEqual(ways(overlay), [
    '10.128.2.0/23 192.0.2.11@eth0 1500',
    '10.128.4.0/23 10.128.4.0@vx4 1450',
    '10.128.0.0/14 unreachable',
  ]);
  const mac = tunnelMac('10.128.4.0/23');
  assert.deepEqual(overlay.forwards, [{ link: 'vx4', mac, destination: '198.51.100.12' }]);
  assert.deepEqual(overlay.neighbors, [{ link: 'vx4', address: '10.128.4.0', mac }]);
  assert.deepEqual(overlay.links, [
    {
      name: 'vx4',
      underlay: 4,
      mac: tunnelMac('10.128.0.0/23'),
      mtu: 1450,
      local: undefined,
      addresses: ['10.128.0.0/32'],
    },
  ]);
  assert.equal(podMtu, 1450);
  assert.deepEqual(problems, []);
});

test('backend vxlan tunnels to all hosts, and backend routes uses the router between the hosts', () => {
  assert.deepEqual(ways(planOverlay(input({ backend: 'vxlan' })).overlay).slice(0, 2), [
    '10.128.2.0/23 10.128.2.0@vx4 1450',
    '10.128.4.0/23 10.128.4.0@vx4 1450',
  ]);
  const { overlay, podMtu } = planOverlay(input({ backend: 'routes' }));
  assert.deepEqual(ways(overlay).slice(0, 2), [
    '10.128.2.0/23 192.0.2.11@eth0 1500',
    '10.128.4.0/23 192.0.2.1@eth0 1500',
  ]);
  assert.deepEqual([overlay.links, podMtu], [[], 1500]);
});

test('sets the pod MTU to the smallest path MTU, within the configured limit and the IPv6 minimum', () => {
  const paths = (mtu: number) =>
    new Map([
      ['192.0.2.11', direct(9000)],
      ['198.51.100.12', routed(mtu)],
    ]);
  assert.equal(planOverlay(input({ linkMtu: 9000, paths: paths(1400) })).podMtu, 1350);
  assert.equal(planOverlay(input({ linkMtu: 9000, paths: paths(9000) })).podMtu, 8950);
  assert.equal(planOverlay(input({ linkMtu: 9000, paths: paths(9000), mtu: 1300 })).podMtu, 1300);
  assert.equal(planOverlay(input({ paths: paths(576) })).podMtu, 1280);
  assert.deepEqual(ways(planOverlay(input({ paths: paths(576) })).overlay)[1], '10.128.4.0/23 10.128.4.0@vx4 526');
  assert.equal(planOverlay(input({ peers: [], linkMtu: 1492 })).podMtu, 1492);
});

test('tunnels pod ranges of an address family that the hosts do not have', () => {
  const both = (peer: Peer, v6: string): Peer => ({ ...peer, podCidrs: [...peer.podCidrs, v6] });
  const { overlay } = planOverlay(
    input({ own: both(own, 'fd01::/64'), peers: [both(near, 'fd01:0:0:1::/64')], clusterCidrs: [] }),
  );
  assert.deepEqual(ways(overlay), ['10.128.2.0/23 192.0.2.11@eth0 1500', 'fd01:0:0:1::/64 fd01:0:0:1::@vx4 1450']);
  assert.deepEqual(overlay.links[0]?.addresses, ['10.128.0.0/32', 'fd01::/128']);
});

test('between IPv6-only hosts, subtracts the larger IPv6 header from the MTU and sets a source address', () => {
  const { overlay, podMtu } = planOverlay(
    input({
      own: { ...own, addresses: ['2001:db8:1::a'] },
      peers: [{ ...far, addresses: ['2001:db8:2::c'] }],
      paths: new Map([['2001:db8:2::c', { ...routed(), gateway: 'fe80::1' }]]),
    }),
  );
  assert.deepEqual(ways(overlay)[0], '10.128.4.0/23 10.128.4.0@vx6 1430');
  assert.deepEqual([overlay.links[0]?.local, podMtu], ['2001:db8:1::a', 1430]);
});

test('the plan of pod routes reports nodes with unusable addresses and keeps the routes to other nodes', () => {
  const { overlay, problems } = planOverlay(
    input({
      peers: [
        near,
        { node: 'double', addresses: ['192.0.2.10'], podCidrs: ['10.128.6.0/23'] },
        { node: 'lost', addresses: ['203.0.113.1'], podCidrs: ['10.128.8.0/23'] },
        { node: 'inside', addresses: ['10.128.10.1'], podCidrs: ['10.128.10.0/23'] },
        { node: 'thief', addresses: ['192.0.2.13'], podCidrs: ['10.128.2.0/23'] },
        { node: 'own-range', addresses: ['192.0.2.14'], podCidrs: ['10.128.0.0/23'] },
        { node: 'garbage', addresses: ['not an address'], podCidrs: ['x/y'] },
      ],
      paths: new Map(['192.0.2.11', '192.0.2.13', '192.0.2.14'].map((address) => [address, direct()])),
    }),
  );
  assert.deepEqual(ways(overlay), ['10.128.2.0/23 192.0.2.11@eth0 1500', '10.128.0.0/14 unreachable']);
  assert.deepEqual(problems, [
    { node: 'double', why: 'address 192.0.2.10 belongs to this host' },
    { node: 'inside', why: 'the node has no InternalIP outside of the pod network' },
    { node: 'lost', why: 'no route to 203.0.113.1' },
    { node: 'own-range', why: 'pod range 10.128.0.0/23 belongs to another node' },
    { node: 'thief', why: 'pod range 10.128.2.0/23 belongs to another node' },
  ]);
});

test('derives the MAC address of a tunnel from the pod range, locally administered and unique', () => {
  const macs = new Set<string>();
  for (let index = 0; index < 512; index++)
    macs.add(tunnelMac(`10.${128 + (index >> 7)}.${(index % 128) * 2}.0/23`) ?? '');
  for (let index = 0; index < 512; index++) macs.add(tunnelMac(`fd01:0:0:${index.toString(16)}::/64`) ?? '');
  assert.equal(macs.size, 1024);
  for (const mac of macs) assert.match(mac, /^0a:5[46](:[0-9a-f]{2}){4}$/);
});

const NONE: Overlay = { links: [], neighbors: [], forwards: [], routes: [] };

/** Simulates the kernel, with the same errors. */
function applied(present: Overlay, changes: readonly OverlayChange[]): Overlay {
  const links = new Map(present.links.map((link) => [link.name, link]));
  const neighbors = new Map(present.neighbors.map((each) => [`${each.link} ${each.address}`, each]));
  const forwards = new Map(present.forwards.map((each) => [`${each.link} ${each.mac}`, each]));
  const routes = new Map(present.routes.map((each) => [each.destination, each]));
  const needsLink = (name: string): void => {
    if (name.startsWith('vx')) assert.ok(links.has(name), `no link ${name}`);
  };
  for (const change of changes) {
    switch (change.op) {
      case 'add-link':
        assert.ok(!links.has(change.link.name), 'File exists');
        links.set(change.link.name, change.link);
        break;
      case 'update-link':
        needsLink(change.link.name);
        links.set(change.link.name, change.link);
        break;
      case 'delete-link':
        assert.ok(links.delete(change.name));
        for (const [key, { link }] of neighbors) if (link === change.name) neighbors.delete(key);
        for (const [key, { link }] of forwards) if (link === change.name) forwards.delete(key);
        for (const [key, { via }] of routes) if (via?.link === change.name) routes.delete(key);
        break;
      case 'replace-neighbor':
        needsLink(change.neighbor.link);
        neighbors.set(`${change.neighbor.link} ${change.neighbor.address}`, change.neighbor);
        break;
      case 'delete-neighbor':
        assert.ok(neighbors.delete(`${change.neighbor.link} ${change.neighbor.address}`));
        break;
      case 'replace-forward':
        needsLink(change.forward.link);
        forwards.set(`${change.forward.link} ${change.forward.mac}`, change.forward);
        break;
      case 'delete-forward':
        assert.ok(forwards.delete(`${change.forward.link} ${change.forward.mac}`));
        break;
      case 'replace-route':
        if (change.route.via !== undefined) needsLink(change.route.via.link);
        routes.set(change.route.destination, change.route);
        break;
      case 'delete-route':
        assert.ok(routes.delete(change.route.destination));
        break;
    }
  }
  return {
    links: [...links.values()],
    neighbors: [...neighbors.values()],
    forwards: [...forwards.values()],
    routes: [...routes.values()],
  };
}

const sorted = (overlay: Overlay): unknown =>
  Object.fromEntries(
    Object.entries(overlay).map(([name, list]) => [name, list.map((each: unknown) => JSON.stringify(each)).sort()]),
  );

/** Linear congruential generator of Numerical Recipes. The seed is printed when a case fails. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test('applying the difference between two route plans yields the second plan', () => {
  for (let seed = 0; seed < 300; seed++) {
    const random = randomOf(seed);
    const cluster = (): OverlayInput => {
      const paths = new Map<string, PeerPath>();
      const peers: Peer[] = [];
      for (let index = 1; index <= random(8); index++) {
        const addresses: string[] = [];
        if (random(4) > 0) addresses.push(`192.0.2.${index * 10 + random(3)}`);
        if (random(2) > 0) addresses.push(`2001:db8::${index}${random(3)}`);
        for (const address of addresses)
          if (random(8) > 0)
            paths.set(address, random(2) > 0 ? direct(1400 + random(3) * 50) : routed(1300 + random(3) * 50));
        const podCidrs = [`10.128.${index * 2}.0/23`, `fd01:0:0:${index}::/64`].slice(0, 1 + random(2));
        peers.push({ node: `n${index}`, addresses, podCidrs });
      }
      return input({
        own: { ...own, addresses: ['192.0.2.1', `2001:db8::${random(2) + 1}`] },
        peers,
        paths,
        backend: (['auto', 'routes', 'vxlan'] as const)[random(3)] ?? 'auto',
      });
    };
    let state = NONE;
    for (let step = 0; step < 4; step++) {
      const given = cluster();
      const { overlay, problems } = planOverlay(given);
      try {
        state = applied(state, overlayChanges(overlay, state));
        assert.deepEqual(sorted(state), sorted(overlay));
        assert.deepEqual(overlayChanges(overlay, state), []);
        // Each pod range has one route, unless its node is reported as a problem.
        const lost = new Set(problems.map(({ node }) => node));
        for (const { node, podCidrs } of given.peers)
          for (const cidr of podCidrs)
            assert.ok(
              lost.has(node) || overlay.routes.filter(({ destination }) => destination === cidr).length === 1,
              cidr,
            );
      } catch (error) {
        throw new Error(`seed ${seed}, step ${step}`, { cause: error });
      }
    }
    assert.deepEqual(sorted(applied(state, overlayChanges(NONE, state))), sorted(NONE));
  }
});

test('uses an unproven address of a Node only as a next hop, never as a tunnel endpoint', () => {
  const paths = new Map([
    ['192.0.2.11', routed()],
    ['2001:db8::b', direct()],
  ]);
  const peer: Peer = { ...near, podCidrs: ['10.128.2.0/23', 'fd01:0:0:2::/64'], unproven: ['2001:db8::b'] };
  const mine: Peer = { ...own, podCidrs: ['10.128.0.0/23', 'fd01:0:0:1::/64'] };
  const { overlay, problems } = planOverlay(input({ own: mine, peers: [peer], paths }));
  assert.deepEqual(problems, []);
  assert.deepEqual(
    overlay.forwards.map(({ destination }) => destination),
    ['192.0.2.11'],
  );
  assert.ok(ways(overlay).includes('fd01:0:0:2::/64 2001:db8::b@eth0 1500'), ways(overlay).join());
  const untrusted = planOverlay(input({ peers: [{ ...near, addresses: [], unproven: [] }] }));
  assert.deepEqual(untrusted.problems, [{ node: 'b', why: 'no address of the node is approved' }]);
  assert.deepEqual(ways(untrusted.overlay), ['10.128.0.0/14 unreachable']);
});
