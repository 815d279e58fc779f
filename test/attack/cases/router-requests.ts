/** Requests through routes that would bypass the rules of a route or use up the router. */
import assert from 'node:assert/strict';
import { eventually } from '../../e2e/harness.ts';
import type { AttackLab, RawAnswer } from '../lab.ts';
import type { AttackCase } from '../port.ts';

const SERVER_PORT = 18_099;
/** Responds with the value of the header Upgrade. */
const SERVER = `require('node:http').createServer((request, response) =>
  response.end('upgrade=' + request.headers.upgrade)).listen(${SERVER_PORT}, process.argv[1])`;

interface Tenant {
  readonly host: string;
  readonly address: string;
}

/** Creates a route in a new namespace. Its service has the node's address and the given port as the only endpoint. */
async function routeTo(lab: AttackLab, port: number, termination: string): Promise<Tenant> {
  const { namespace } = await lab.tenant();
  const path = '{.items[0].status.addresses[?(@.type=="InternalIP")].address}';
  const address = await lab.pods.kubectl('get', 'nodes', '-o', `jsonpath=${path}`);
  const host = `${namespace}.example.test`;
  const metadata = { name: 'web', namespace };
  await lab.pods.apply(
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 80 }] } },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: [{ port, protocol: 'TCP' }],
    },
    {
      apiVersion: 'route.openshift.io/v1',
      kind: 'Route',
      metadata,
      spec: {
        host,
        to: { kind: 'Service', name: 'web' },
        tls: { termination, ...(termination === 'edge' ? { insecureEdgeTerminationPolicy: 'Allow' } : {}) },
      },
    },
  );
  return { host, address };
}

const get = (lab: AttackLab, scheme: 'http' | 'https', host: string, ...options: string[]): Promise<RawAnswer> =>
  lab.curl(`${scheme}://${host}/`, [
    ...['--http1.1', '--resolve', `${host}:80:127.0.0.1`, '--resolve', `${host}:443:127.0.0.1`],
    ...options,
  ]);

export const cases: readonly AttackCase[] = [
  {
    finding: 53,
    title: 'an upgrade to HTTP/2 does not reach the server of a route, also not over TLS',
    attack: async (lab) => {
      const { host, address } = await routeTo(lab, SERVER_PORT, 'edge');
      const server = lab.appliance.spawnInside(process.execPath, ['-e', SERVER, address]);
      try {
        const headers = [
          '-H',
          'Connection: Upgrade, HTTP2-Settings',
          '-H',
          'Upgrade: h2c',
          '-H',
          'HTTP2-Settings: AAA',
        ];
        for (const scheme of ['http', 'https'] as const) {
          const body = await eventually(`${scheme} is served`, 20_000, async () => {
            const answer = await get(lab, scheme, host, ...headers);
            return answer.code === 200 ? answer.body : undefined;
          });
          assert.equal(body, 'upgrade=undefined', scheme);
        }
      } finally {
        server.kill();
      }
    },
  },
  {
    finding: 53,
    title: 'a service whose endpoint is the router cannot multiply requests or connections',
    exclusive: true,
    attack: async (lab) => {
      const count = async (what: string, name: string): Promise<number> => {
        const { body } = await lab.curl('http://127.0.0.1:1936/metrics');
        const namespace = name.replace('.example.test', '');
        const pattern = new RegExp(`backend_${what}_total\\{namespace="${namespace}",[^}]*\\} (\\d+)`);
        return Number(pattern.exec(body)?.[1] ?? 0);
      };
      const plain = await routeTo(lab, 80, 'edge');
      await eventually('the loop is detected', 20_000, async () =>
        (await get(lab, 'http', plain.host)).code === 508 ? true : undefined,
      );
      assert.ok((await count('sessions', plain.host)) <= 8);
      const sealed = await routeTo(lab, 443, 'passthrough');
      await eventually('the route is served', 20_000, async () => {
        assert.equal((await get(lab, 'https', sealed.host)).code, 0);
        return (await count('connection_errors', sealed.host)) > 0 ? true : undefined;
      });
      assert.ok((await count('sessions', sealed.host)) <= 2);
    },
  },
];
