import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { connect, createServer } from 'node:tls';
import { excludeSlowKeyExchanges } from '../../../src/host/process/tls.ts';

test('offers no finite-field Diffie-Hellman, because the server would choose the group', async () => {
  const args =
    'req -x509 -newkey rsa:2048 -nodes -subj /CN=x -days 2 -addext subjectAltName=IP:127.0.0.1 -keyout - -out -';
  const pem = execFileSync('openssl', args.split(' '), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const serve = async (ciphers: string): Promise<string> => {
    const server = createServer({ cert: pem, key: pem, dhparam: 'auto', maxVersion: 'TLSv1.2', ciphers });
    server.on('tlsClientError', () => {});
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, ca: pem });
    const result = await new Promise<string>((resolve) => {
      socket.once('secureConnect', () => resolve(socket.getCipher().name));
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    });
    socket.destroy();
    server.close();
    return result;
  };
  excludeSlowKeyExchanges();
  excludeSlowKeyExchanges();
  assert.match(await serve('DHE-RSA-AES128-GCM-SHA256'), /ALERT_HANDSHAKE_FAILURE$/);
  assert.match(await serve('ECDHE+AESGCM'), /^ECDHE-/);
});
