import assert from 'node:assert/strict';
import { Resolver } from 'node:dns/promises';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { decode, encode, type Packet } from 'dns-packet';
import type { Service } from '../../../src/api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../src/api/generated/discovery/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { address, ask, type NameServer, type Running, startDns, startNameServer } from './harness.ts';

const service = (name: string, spec: Service['spec']): Service => ({
  metadata: { name, namespace: 'default' },
  ...(spec === undefined ? {} : { spec }),
});
const endpoints = (of: string, addresses: readonly string[]): EndpointSlice => ({
  metadata: { name: `${of}-1`, namespace: 'default', labels: { 'kubernetes.io/service-name': of } },
  addressType: 'IPv4',
  endpoints: addresses.map((each, index) => ({ addresses: [each], hostname: `${of}-${index}` })),
  ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
});
const SOA = {
  name: 'example.com',
  type: 'SOA' as const,
  ttl: 300,
  data: { mname: 'ns.example.com', rname: 'me.example.com', serial: 1, refresh: 1, retry: 1, expire: 1, minimum: 60 },
};

let upstream: NameServer;
let stub: NameServer;
let dns: Running;
let resolver: Resolver;

before(async () => {
  upstream = await startNameServer(({ name, type }, transport) => {
    if (name.startsWith('silent')) return 'silent';
    if (name.startsWith('big'))
      return transport === 'udp'
        ? { flags: 0x0380 }
        : { answers: Array.from({ length: 100 }, (_, index) => address(name, `192.0.2.${index}`)) };
    if (name.startsWith('broken')) return { flags: 0x0182 };
    if (name.startsWith('nothing')) return { flags: 0x0183, authorities: [SOA] };
    return type === 'A' ? { answers: [address(name, '192.0.2.1')] } : { authorities: [SOA] };
  });
  stub = await startNameServer(({ name }) => ({ answers: [address(name, '192.0.2.53')] }));
  dns = await startDns({ stubDomains: new Map([['corp.example', [stub]]]) }, [upstream]);
  const services = dns.fed.of(resources.services);
  services.set(
    service('web', { clusterIP: '172.30.1.1', clusterIPs: ['172.30.1.1'], ports: [{ name: 'http', port: 80 }] }),
  );
  services.set(service('db', { clusterIP: 'None', clusterIPs: ['None'] }));
  services.set(service('many', { clusterIP: 'None', clusterIPs: ['None'] }));
  services.set(service('www', { type: 'ExternalName', externalName: 'www.example.com' }));
  services.set(service('lost', { type: 'ExternalName', externalName: 'nothing.example.com' }));
  const slices = dns.fed.of(resources.endpointSlices);
  slices.set(endpoints('db', ['10.128.0.5', '10.128.0.6']));
  slices.set(
    endpoints(
      'many',
      Array.from({ length: 200 }, (_, index) => `10.128.1.${index}`),
    ),
  );
  services.sync();
  slices.sync();
  await new Promise((resolve) => setImmediate(resolve));
  resolver = new Resolver({ timeout: 3_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${dns.port}`]);
});
after(async () => {
  await dns.stop();
  await Promise.all([upstream.close(), stub.close()]);
});

const query = (name: string, type: 'A' | 'AAAA' | 'SRV' = 'A', more: Packet = {}): Buffer =>
  encode({ type: 'query', id: 4711, flags: 0x0100, questions: [{ name, type }], ...more });
const code = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? '';

test('resolves services, endpoints, ports, reverse names and external names for a client', async () => {
  assert.deepEqual(await resolver.resolve4('web.default.svc.cluster.local'), ['172.30.1.1']);
  assert.deepEqual((await resolver.resolve4('db.default.svc.cluster.local')).sort(), ['10.128.0.5', '10.128.0.6']);
  assert.deepEqual(await resolver.resolve4('db-1.db.default.svc.cluster.local'), ['10.128.0.6']);
  const srv = await resolver.resolveSrv('_http._tcp.db.default.svc.cluster.local');
  assert.deepEqual(srv.map(({ name, port }) => `${name}:${port}`).sort(), [
    'db-0.db.default.svc.cluster.local:8080',
    'db-1.db.default.svc.cluster.local:8080',
  ]);
  assert.deepEqual(await resolver.reverse('172.30.1.1'), ['web.default.svc.cluster.local']);
  assert.deepEqual(await resolver.resolveTxt('dns-version.cluster.local'), [['1.1.0']]);
  assert.equal((await resolver.resolveSoa('cluster.local')).nsname, 'ns.dns.cluster.local');
  assert.deepEqual(await resolver.resolve4('www.example.com'), ['192.0.2.1']);
  assert.deepEqual(await resolver.resolve4('host.corp.example'), ['192.0.2.53']);
  assert.deepEqual(
    await resolver.resolve4('www.default.svc.cluster.local'),
    ['192.0.2.1'],
    'an external name, resolved',
  );
  assert.deepEqual(await resolver.resolveCname('www.default.svc.cluster.local'), ['www.example.com']);
});

test('distinguishes an unknown name, a name without the requested record, and a failing upstream server', async () => {
  await assert.rejects(resolver.resolve4('no.default.svc.cluster.local'), (error) => code(error) === 'ENOTFOUND');
  await assert.rejects(resolver.resolve6('web.default.svc.cluster.local'), (error) => code(error) === 'ENODATA');
  await assert.rejects(resolver.resolve4('nothing.example.com'), (error) => code(error) === 'ENOTFOUND');
  await assert.rejects(resolver.resolve6('www.example.com'), (error) => code(error) === 'ENODATA');
  await assert.rejects(resolver.resolve4('broken.example.com'), (error) => code(error) === 'ESERVFAIL');
  await assert.rejects(resolver.resolve4('lost.default.svc.cluster.local'), (error) => code(error) === 'ENOTFOUND');
});

test('caches positive and negative responses of upstream servers, with decreasing TTL', async () => {
  const times = (text: string): number => upstream.queries.filter((each) => each === text).length;
  for (let round = 0; round < 3; round++) {
    await resolver.resolve4('kept.example.com');
    await resolver.resolve4('nothing-kept.example.com').catch(() => {});
    await resolver.resolve6('kept.example.com').catch(() => {});
  }
  assert.equal(times('udp kept.example.com A'), 1);
  assert.equal(times('udp nothing-kept.example.com A'), 1);
  assert.equal(times('udp kept.example.com AAAA'), 1);
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  const [{ ttl } = { ttl: 0 }] = await resolver.resolve4('kept.example.com', { ttl: true });
  assert.ok(ttl < 60 && ttl > 50, String(ttl));
  // Concurrent clients with one question cause one upstream query.
  await Promise.all(Array.from({ length: 20 }, () => resolver.resolve4('together.example.com')));
  assert.equal(times('udp together.example.com A'), 1);
});

test('truncates a large response over UDP, and returns the complete response over TCP and with EDNS', async () => {
  const name = 'many.default.svc.cluster.local';
  const cut = await ask(dns.port, query(name));
  assert.ok(cut !== undefined && cut.length <= 512);
  const short = decode(cut);
  assert.ok(short.flag_tc && (short.answers ?? []).length > 10);
  const opt = {
    name: '.',
    type: 'OPT' as const,
    udpPayloadSize: 4096,
    extendedRcode: 0,
    ednsVersion: 0,
    flags: 0,
    flag_do: false,
    options: [],
  };
  const longer = await ask(dns.port, query(name, 'A', { additionals: [opt] }));
  assert.ok(longer !== undefined && longer.length > 1_000 && longer.length <= 1_232, String(longer?.length));
  assert.equal(decode(longer).additionals?.[0]?.type, 'OPT');
  // c-ares switches to TCP automatically.
  assert.equal((await resolver.resolve4(name)).length, 200);
  assert.equal((await resolver.resolve4('big.example.com')).length, 100);
  assert.ok(upstream.queries.includes('tcp big.example.com A'));
});

test('preserves the letter case of the queried name and rotates the addresses in responses', async () => {
  const spelt = await ask(dns.port, query('wEb.DeFaUlT.sVc.ClUsTeR.lOcAl'));
  assert.equal(decode(spelt ?? Buffer.alloc(0)).questions?.[0]?.name, 'wEb.DeFaUlT.sVc.ClUsTeR.lOcAl');
  assert.equal(decode(spelt ?? Buffer.alloc(0)).answers?.[0]?.name, 'wEb.DeFaUlT.sVc.ClUsTeR.lOcAl');
  const outside = await ask(dns.port, query('KePt.ExAmPlE.cOm'));
  assert.equal(decode(outside ?? Buffer.alloc(0)).questions?.[0]?.name, 'KePt.ExAmPlE.cOm');
  const first = new Set<unknown>();
  for (let round = 0; round < 4; round++) {
    const answer = decode((await ask(dns.port, query('db.default.svc.cluster.local'))) ?? Buffer.alloc(0));
    const [one] = answer.answers ?? [];
    first.add(one?.type === 'A' ? one.data : undefined);
    assert.equal(answer.answers?.length, 2);
    assert.equal(answer.id, 4711);
    assert.ok(answer.flag_aa && answer.flag_ra && answer.flag_rd);
  }
  assert.deepEqual([...first].sort(), ['10.128.0.5', '10.128.0.6']);
});

test('cluster DNS returns a changed endpoint within a second', async () => {
  const name = 'db.default.svc.cluster.local';
  const startMs = performance.now();
  dns.fed.of(resources.endpointSlices).set(endpoints('db', ['10.128.0.9']));
  assert.deepEqual(await resolver.resolve4(name), ['10.128.0.9']);
  dns.fed.of(resources.endpointSlices).remove('default/db-1');
  await assert.rejects(resolver.resolve4(name), (error) => code(error) === 'ENOTFOUND');
  dns.fed.of(resources.services).remove('default/web');
  await assert.rejects(resolver.resolve4('web.default.svc.cluster.local'), (error) => code(error) === 'ENOTFOUND');
  assert.ok(performance.now() - startMs < 1_000);
});

test('cluster DNS answers several queries on one connection', async () => {
  const socket = connect(dns.port, '127.0.0.1');
  const framed = (message: Buffer): Buffer =>
    Buffer.concat([Buffer.of(message.length >> 8, message.length & 255), message]);
  const all = Buffer.concat([
    framed(query('kubernetes.default.svc.cluster.local')),
    framed(query('tcp.example.com')),
    framed(query('x.cluster.local')),
  ]);
  // The queries arrive in pieces, as a network may deliver them.
  socket.write(all.subarray(0, 20));
  setTimeout(() => socket.write(all.subarray(20)), 50);
  const received: Buffer[] = [];
  let count = 0;
  for await (const chunk of socket) {
    received.push(chunk as Buffer);
    let rest = Buffer.concat(received);
    for (count = 0; rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0); count++)
      rest = rest.subarray(2 + rest.readUInt16BE(0));
    if (count === 3) break;
  }
  assert.equal(count, 3);
});

test('cluster DNS answers only clients on this host and in pods', async () => {
  assert.equal(await ask(dns.port, query('kubernetes.default.svc.cluster.local'), 300, '127.0.0.2'), undefined);
  assert.notEqual(await ask(dns.port, query('kubernetes.default.svc.cluster.local'), 300, '127.0.0.1'), undefined);
});

test('rejects DNS messages other than queries, without a response larger than the message', async () => {
  const rcodeOf = async (message: Buffer): Promise<number | undefined> => {
    const response = await ask(dns.port, message, 500);
    return response === undefined ? undefined : response.readUInt16BE(2) & 15;
  };
  const good = query('web.default.svc.cluster.local');
  const changed = (at: number, ...bytes: number[]): Buffer => {
    const copy = Buffer.from(good);
    copy.set(bytes, at);
    return copy;
  };
  assert.equal(await rcodeOf(changed(2, 0x80)), undefined, 'a response is not answered');
  assert.equal(await rcodeOf(changed(2, 0x28)), 4, 'an update');
  assert.equal(await rcodeOf(changed(4, 0, 2)), 1, 'two questions');
  assert.equal(await rcodeOf(changed(4, 0xff, 0xff)), 1);
  assert.equal(await rcodeOf(changed(12, 0xc0, 0x0c)), 1, 'a pointer in a question');
  assert.equal(await rcodeOf(good.subarray(0, 20)), 1);
  assert.equal(await rcodeOf(changed(good.length - 2, 0, 3)), 5, 'another class');
  assert.equal(await rcodeOf(changed(good.length - 4, 0, 252)), 5, 'a zone transfer');
  assert.equal(await rcodeOf(Buffer.alloc(5)), undefined);
});

test('fails external names immediately if no upstream server is configured or its port is closed', async () => {
  const alone = await startDns({}, []);
  alone.fed.of(resources.services).sync();
  alone.fed.of(resources.endpointSlices).sync();
  const asks = new Resolver({ timeout: 5_000, tries: 1 });
  asks.setServers([`127.0.0.1:${alone.port}`]);
  try {
    let startMs = performance.now();
    await assert.rejects(asks.resolve4('www.example.com'), (error) => code(error) === 'ENOTFOUND');
    assert.ok(performance.now() - startMs < 200);
    // A closed port is detected immediately.
    alone.setHostServers([{ address: '127.0.0.1', port: 1 }]);
    await new Promise((resolve) => setTimeout(resolve, 50));
    startMs = performance.now();
    await assert.rejects(asks.resolve4('www.example.com'), (error) => code(error) === 'ESERVFAIL');
    assert.ok(performance.now() - startMs < 500);
    // The own address of the server does not count as an upstream server. The port of the configuration is 0 in this
    // test.
    alone.setHostServers([{ address: '127.0.0.1', port: 0 }]);
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.match(alone.lines.at(-1) ?? '', /DNS upstream servers set servers=\[\]/);
  } finally {
    await alone.stop();
  }
  assert.deepEqual(alone.bound, []);
});

test('cluster DNS skips an upstream server that does not respond, and queries it last afterwards', async () => {
  const silent = await startNameServer(() => 'silent');
  const good = await startNameServer(({ name }) => ({ answers: [address(name, '192.0.2.7')] }));
  const both = await startDns({ upstreams: [silent, good] });
  const asks = new Resolver({ timeout: 5_000, tries: 1 });
  asks.setServers([`127.0.0.1:${both.port}`]);
  try {
    assert.deepEqual(await asks.resolve4('one.example.com'), ['192.0.2.7']);
    const { length } = silent.queries;
    const startMs = performance.now();
    assert.deepEqual(await asks.resolve4('two.example.com'), ['192.0.2.7']);
    assert.ok(performance.now() - startMs < 1_000);
    assert.equal(silent.queries.length, length);
  } finally {
    await both.stop();
    await Promise.all([silent.close(), good.close()]);
  }
});

test('retransmits lost upstream queries, so that few lost datagrams cause no failed name', async () => {
  let drop = 2;
  const lossy = await startNameServer(({ name }) =>
    drop-- > 0 ? 'silent' : { answers: [address(name, '192.0.2.8')] },
  );
  const dns = await startDns({ upstreams: [lossy] });
  const asks = new Resolver({ timeout: 5_000, tries: 1 });
  asks.setServers([`127.0.0.1:${dns.port}`]);
  try {
    const startMs = performance.now();
    assert.deepEqual(await asks.resolve4('one.example.com'), ['192.0.2.8']);
    assert.ok(performance.now() - startMs < 1_400);
    // A whole attempt of three datagrams is lost. The next attempt finds the name, and other names are resolved in the
    // meantime.
    drop = 3;
    assert.deepEqual(await asks.resolve4('two.example.com'), ['192.0.2.8']);
    assert.deepEqual(await asks.resolve4('three.example.com'), ['192.0.2.8']);
    // Failures are not cached: the same name works as soon as the server responds.
    drop = 1_000;
    await assert.rejects(asks.resolve4('four.example.com'));
    // The client's resolver times out before the server's query ends.
    await new Promise((resolve) => setTimeout(resolve, 4_700));
    drop = 0;
    assert.deepEqual(await asks.resolve4('four.example.com'), ['192.0.2.8']);
    assert.deepEqual(await asks.resolve4('five.example.com'), ['192.0.2.8']);
  } finally {
    await dns.stop();
    await lossy.close();
  }
});

test('returns SERVFAIL until the services are synced, and uses the upstream servers of the ConfigMap kube-dns', async () => {
  const early = await startDns({}, []);
  const asks = new Resolver({ timeout: 5_000, tries: 1 });
  asks.setServers([`127.0.0.1:${early.port}`]);
  const configMaps = early.fed.of(resources.configMaps);
  const config = (data: Record<string, string>) => ({ metadata: { name: 'kube-dns', namespace: 'kube-system' }, data });
  try {
    await assert.rejects(asks.resolve4('web.default.svc.cluster.local'), (error) => code(error) === 'ESERVFAIL');
    await assert.rejects(asks.resolve4('www.example.com'), (error) => code(error) === 'ENOTFOUND');
    early.fed.of(resources.services).sync();
    early.fed.of(resources.endpointSlices).sync();
    await new Promise((resolve) => setImmediate(resolve));
    await assert.rejects(asks.resolve4('web.default.svc.cluster.local'), (error) => code(error) === 'ENOTFOUND');
    configMaps.set(
      config({
        upstreamNameservers: `["127.0.0.1:${upstream.port}"]`,
        stubDomains: `{"acme.local": ["127.0.0.1:${stub.port}"], "bad": []}`,
      }),
    );
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.deepEqual(await asks.resolve4('www.example.com'), ['192.0.2.1']);
    assert.deepEqual(await asks.resolve4('x.acme.local'), ['192.0.2.53']);
    assert.match(early.lines.join('\n'), /data\.stubDomains\[bad\]: not a list of addresses/);
    configMaps.set(config({ upstreamNameservers: 'oops' }));
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.match(early.lines.join('\n'), /data\.upstreamNameservers: invalid JSON/);
  } finally {
    await early.stop();
  }
});

test('resolves host names of routes to the router of this host unless an upstream server knows them', async () => {
  const routes = { ttlSeconds: 5, addresses: ['192.0.2.80', '2001:db8::80'] };
  const inside = await startDns({ routes: { domain: 'apps.cluster.local', ...routes } }, [upstream]);
  const outside = await startDns({ routes: { domain: 'example.org', ...routes } }, [upstream]);
  try {
    for (const each of [inside, outside]) {
      each.fed.of(resources.services).sync();
      each.fed.of(resources.endpointSlices).sync();
    }
    const at = ({ port }: Running): Resolver => {
      const found = new Resolver({ tries: 1, timeout: 2_000 });
      found.setServers([`127.0.0.1:${port}`]);
      return found;
    };
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.deepEqual(await at(inside).resolve4('console-openshift-console.apps.cluster.local'), ['192.0.2.80']);
    assert.deepEqual(await at(inside).resolve6('web-shop.apps.cluster.local'), ['2001:db8::80']);
    await assert.rejects(at(inside).resolve4('apps.cluster.local'), { code: 'ENOTFOUND' });
    await assert.rejects(at(inside).resolve4('none.default.svc.cluster.local'), { code: 'ENOTFOUND' });
    assert.deepEqual(await at(outside).resolve4('nothing.example.org'), ['192.0.2.80']);
    // A name server that has the name takes precedence.
    assert.deepEqual(await at(outside).resolve4('web.example.org'), ['192.0.2.1']);
  } finally {
    await inside.stop();
    await outside.stop();
  }
});
