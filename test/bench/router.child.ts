/** The proxy as a process of its own, like haproxy. It receives its tables as lists of routes. */

import type { Log } from '../../src/base/log.ts';
import { Balancer, planRouting } from '../../src/network/router/core/index.ts';
import { createCertificateVerifier, proxyFactory } from '../../src/network/router/io/index.ts';
import type { Route } from '../../src/network/router/kinds/routes/types.ts';

export interface ChildSettings {
  readonly httpPort: number;
  readonly httpsPort: number;
  readonly web: number;
  readonly stream: number;
  readonly certificate: string;
  readonly key: string;
}

const settings = JSON.parse(process.argv[2] ?? '{}') as ChildSettings;
const { httpPort, httpsPort, web, stream, certificate, key } = settings;
const silent = { info() {}, warn() {}, error() {}, v() {}, named: () => silent } as Partial<Log> as Log;
const proxy = proxyFactory(silent, '127.0.0.1').create(
  {
    httpPort,
    httpsPort,
    statsPort: undefined,
    proxyProtocol: false,
    accessLog: false,
    clusterCa: async () => certificate,
  },
  new Balancer(Math.random),
  () => {},
);
proxy.useDefaultCertificate({ certificate, key });
const judge = createCertificateVerifier();
const routes = new Map<string, Route>();
process.on('message', (given: readonly Route[]) => {
  for (const each of given) routes.set(each.metadata?.name ?? '', each);
  const { table } = planRouting({
    routes: [...routes.values()],
    ingresses: [],
    ingressClasses: [],
    httpRoutes: [],
    gateways: [],
    permits: () => false,
    service: () => undefined,
    slices: (service) => [
      {
        addressType: 'IPv4',
        metadata: {},
        ports: [{ port: service === 'bench/pass' ? stream : web }],
        endpoints: [{ addresses: ['127.0.0.1'] }],
      },
    ],
    certificate: () => undefined,
    check: judge,
    ports: { http: httpPort, https: httpsPort },
    policy: { domain: 'apps.lab', wildcardRoutes: true },
  });
  proxy.swap(table);
  process.send?.('swapped');
});
process.on('disconnect', () => process.exit(0));
await proxy.start();
process.send?.('started');
