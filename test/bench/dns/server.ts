/**
 * Child process of test/bench/dns.ts: cluster DNS with 10,000 services, or a bare UDP echo. Reports its port, and its
 * CPU time on request.
 */
import { createSocket } from 'node:dgram';
import { resources } from '../../../src/api/resources.ts';
import { startDns } from '../../network/dns/harness.ts';

const SERVICES = 10_000;

async function listen(): Promise<number> {
  if (process.argv[2] === 'echo') {
    const socket = createSocket({ type: 'udp4', lookup: (host, _options, done) => done(null, host, 4) });
    socket.on('message', (message, client) => socket.send(message, client.port, client.address, () => {}));
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    return socket.address().port;
  }
  const dns = await startDns();
  const services = dns.fed.of(resources.services);
  for (let index = 0; index < SERVICES; index++) {
    const ip = `172.30.${index >> 8}.${index & 255}`;
    services.set({
      metadata: { name: `service-${index}`, namespace: `ns-${index % 50}` },
      spec: { clusterIP: ip, clusterIPs: [ip], ports: [{ name: 'http', port: 80 }] },
    });
  }
  services.sync();
  dns.fed.of(resources.endpointSlices).sync();
  return dns.port;
}

process.send?.({ port: await listen() });
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpuMs: (user + system) / 1_000 });
});
