/** HTTP health checks for load balancers. */
import { createServer, type Server } from 'node:http';
import type { HealthPorts } from '../../core/port.ts';

/** Maximum number of connections. A load balancer sends one short request at a time. */
const MAX_CONNECTIONS = 64;
const REQUEST_MS = 5_000;

/**
 * Listens on every address of the host. As kube-proxy's service health server, it responds 200 if the service has
 * endpoints on this node, 503 otherwise, with the header X-Load-Balancing-Endpoint-Weight.
 */
export function createHealthPorts(): HealthPorts {
  return {
    async listen(port, report) {
      const server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (request, response) => {
        const { namespace, name, localEndpoints } = report();
        const body = JSON.stringify({ service: { namespace, name }, localEndpoints, serviceProxyHealthy: true });
        response.writeHead(localEndpoints > 0 ? 200 : 503, {
          'content-type': 'application/json',
          'x-content-type-options': 'nosniff',
          'x-load-balancing-endpoint-weight': `${localEndpoints}`,
          connection: 'close',
        });
        response.end(request.method === 'HEAD' ? undefined : body);
      });
      server.maxConnections = MAX_CONNECTIONS;
      await listening(server, port);
      return {
        close: () =>
          new Promise((resolve) => {
            server.close(() => resolve());
            server.closeAllConnections();
          }),
      };
    },
  };
}

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}
