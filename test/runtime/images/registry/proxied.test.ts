/** Requests to a registry and its token server through a proxy, with a private authority. */
import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createAuthority, issue, lifetimeFrom } from '../../../../src/pki/certificate.ts';
import { parseReference } from '../../../../src/runtime/images/reference.ts';
import { createRegistryClient } from '../../../../src/runtime/images/registry/registry.ts';
import { SystemAuthorities } from '../../../../src/wire/outbound/authorities.ts';
import type { OutboundSettings } from '../../../../src/wire/outbound/proxy-choice.ts';

const portOf = (server: Server): number => (server.address() as AddressInfo).port;
const listen = (server: Server): Promise<void> => new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const MANIFEST = JSON.stringify({ schemaVersion: 2, layers: [] });

describe('registry behind a proxy', () => {
  /** Targets that clients requested from the proxy, and the credentials it received. */
  const targets: string[] = [];
  const logins = new Set<string | undefined>();
  let registry: Server;
  let tokens: Server;
  let proxy: Server;
  let authorities = '';

  before(async () => {
    const validity = lifetimeFrom(Date.now(), 1);
    const ca = await createAuthority('private', validity);
    authorities = ca.certPem;
    const { certPem, keyPem } = await issue(ca, {
      subject: { commonName: 'registry.example' },
      usages: ['server'],
      names: { dns: ['registry.example', 'tokens.example'], ips: [] },
      validity,
    });
    const tls = { cert: certPem, key: keyPem };
    tokens = createHttpsServer(tls, (_, response) => response.end(JSON.stringify({ token: 'good' })));
    registry = createHttpsServer(tls, (request, response) => {
      if (request.headers.authorization === 'Bearer good') {
        response.end(MANIFEST);
        return;
      }
      response.writeHead(401, { 'www-authenticate': 'Bearer realm="https://tokens.example/token",service="r"' }).end();
    });
    proxy = createHttpServer();
    proxy.on('connect', (request, socket, head) => {
      targets.push(request.url ?? '');
      logins.add(request.headers['proxy-authorization']);
      const to = request.url?.startsWith('tokens') === true ? tokens : registry;
      const target = connect(portOf(to), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        target.write(head);
        target.pipe(socket).pipe(target);
      });
      for (const each of [socket, target]) each.on('error', () => undefined);
    });
    await Promise.all([listen(registry), listen(tokens), listen(proxy)]);
  });
  after(() => {
    for (const server of [registry, tokens, proxy]) {
      server.closeAllConnections();
      server.close();
    }
  });

  const pull = async (outbound: OutboundSettings) => {
    const reference = parseReference('registry.example/team/app:1');
    const options = { insecureRegistries: [], mirrors: {}, outbound };
    const client = createRegistryClient(reference, 'registry.example', undefined, options);
    try {
      return (await client.manifest('1')).bytes.toString();
    } finally {
      await client.close();
    }
  };

  it('sends requests to a registry and its token server through the proxy, with the proxy credentials', async () => {
    const httpsProxy = `http://user:pass%40word@127.0.0.1:${portOf(proxy)}`;
    assert.equal(await pull({ httpsProxy, noProxy: [], authorities }), MANIFEST);
    assert.deepEqual([...new Set(targets)], ['registry.example:443', 'tokens.example:443']);
    assert.deepEqual([...logins], [`Basic ${Buffer.from('user:pass@word').toString('base64')}`]);
  });

  it('rejects a proxied registry whose CA is not trusted, and bypasses the proxy for noProxy names', async () => {
    const httpsProxy = `http://127.0.0.1:${portOf(proxy)}`;
    await assert.rejects(pull({ httpsProxy, noProxy: [] }), /unable to (verify|get local issuer)/);
    const before = targets.length;
    await assert.rejects(pull({ httpsProxy, noProxy: ['.example'], authorities }), /cannot be reached/);
    assert.equal(targets.length, before);
  });
});

it("trusts a CA that is added to the system's CA file, without a restart", async () => {
  const directory = await mkdtemp(join(tmpdir(), 'authorities-'));
  try {
    const file = join(directory, 'ca-certificates.crt');
    const [first, second] = await Promise.all(
      ['first', 'second'].map((name) => createAuthority(name, lifetimeFrom(Date.now(), 1))),
    );
    await writeFile(file, `# comment\n${first?.certPem}`);
    const system = new SystemAuthorities([join(directory, 'absent'), file]);
    const has = (pem: string | undefined): boolean => system.all().includes((pem ?? '').trim());
    assert.deepEqual([has(first?.certPem), has(second?.certPem)], [true, false]);
    await appendFile(file, second?.certPem ?? '');
    assert.deepEqual([has(first?.certPem), has(second?.certPem)], [true, true]);
  } finally {
    await rm(directory, { recursive: true });
  }
});
