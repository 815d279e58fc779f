import assert from 'node:assert/strict';
import { it } from 'node:test';
import { parseEgress } from '../../../src/apiserver/config/egress.ts';

const parse = (...selections: object[]) =>
  parseEgress(
    JSON.stringify({
      apiVersion: 'apiserver.k8s.io/v1beta1',
      kind: 'EgressSelectorConfiguration',
      egressSelections: selections,
    }),
    'egress.yaml',
  );
const connect = (transport: object, name = 'cluster') => ({
  name,
  connection: { proxyProtocol: 'HTTPConnect', transport },
});
const files = { clientCert: '/c.crt', clientKey: '/c.key' };

it('reads the egress configuration with the networks and addresses of proxies', () => {
  assert.deepEqual(
    new Map(
      parse(
        { name: 'etcd', connection: { proxyProtocol: 'Direct' } },
        connect({ uds: { udsName: '/run/proxy.sock' } }, 'Cluster'),
        connect({ tcp: { url: 'https://[::1]:8131', tlsConfig: { ...files, caBundle: '/ca.crt' } } }, 'controlplane'),
      ),
    ),
    new Map<string, object>([
      ['cluster', { socket: '/run/proxy.sock' }],
      [
        'controlplane',
        { host: '::1', port: 8131, tls: { certificateFile: '/c.crt', keyFile: '/c.key', authorityFile: '/ca.crt' } },
      ],
    ]),
  );
  assert.deepEqual(new Map(parse(connect({ tcp: { url: 'http://proxy' } }))).get('cluster'), {
    host: 'proxy',
    port: 80,
  });
});

it('rejects egress configurations that upstream rejects, and unsupported settings', () => {
  const refused: ReadonlyArray<readonly [object[], RegExp]> = [
    [[connect({}, 'moon')], /egressSelections\[0\]\.name: "moon" is not one of controlplane, cluster, etcd/],
    [[connect({ uds: { udsName: 'x' } }), connect({ uds: { udsName: 'y' } })], /\[1\]\.name: "cluster" is given twice/],
    [
      [{ name: 'cluster', connection: { proxyProtocol: 'Direct', transport: {} } }],
      /connection\.transport: config must be absent/,
    ],
    [[{ name: 'cluster', connection: { proxyProtocol: 'HTTPConnect' } }], /transport must be set for HTTPConnect/],
    [[{ name: 'cluster', connection: { proxyProtocol: 'SOCKS' } }], /proxyProtocol/],
    [[connect({})], /One of TCP or UDS must be set/],
    [[connect({ uds: {} })], /udsName: must be present for UDS connections/],
    [[connect({ tcp: { url: 'http://a' }, uds: { udsName: 'x' } })], /TCP and UDS cannot both be set/],
    [[connect({ tcp: { url: 'ftp://a' } })], /url: supported connection protocols are/],
    [[connect({ tcp: { url: 'http://a', tlsConfig: files } })], /config must not be present when using HTTP/],
    [[connect({ tcp: { url: 'https://a' } })], /TLSConfig must be present when using HTTPS/],
    [[connect({ tcp: { url: 'https://a', tlsConfig: { clientCert: '/c' } } })], /Using TLS requires clientKey/],
    [[connect({ tcp: { url: 'https://a', tlsConfig: { clientKey: '/c' } } })], /Using TLS requires clientCert/],
    [
      [{ name: 'cluster', connection: { proxyProtocol: 'GRPC', transport: { uds: { udsName: 'x' } } } }],
      /gRPC proxies are not supported; use HTTPConnect/,
    ],
    [[connect({ uds: { udsName: 'x' } }, 'etcd')], /connections to the store cannot use a proxy; use Direct/],
  ];
  for (const [selections, message] of refused) assert.throws(() => parse(...selections), message);
});
