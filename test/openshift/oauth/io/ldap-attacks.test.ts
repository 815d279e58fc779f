/** Attackers between the login and the LDAP server, and servers that answer without end. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, describe, it } from 'node:test';
import { TLSSocket } from 'node:tls';
import { createLdap } from '../../../../src/openshift/oauth/io/ldap.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../../src/pki/certificate.ts';

const validity = lifetimeFrom(Date.now(), 1);
const authority = await createAuthority('directory', validity);

/** A BER message with an operation; all lengths are in the short form. */
const message = (id: number, operation: number, content: readonly number[]): Buffer =>
  Buffer.from([0x30, content.length + 5, 2, 1, id, operation, content.length, ...content]);
const result = (id: number, operation: number, code = 0): Buffer => message(id, operation, [0x0a, 1, code, 4, 0, 4, 0]);
/** An entry with the attribute `uid`. */
const entry = (id: number, dn = 'cn=a', uid: readonly number[] = []): Buffer => {
  const attribute = [4, 3, 0x75, 0x69, 0x64, 0x31, uid.length + 2, 4, uid.length, ...uid];
  const list = [0x30, attribute.length + 2, 0x30, attribute.length, ...attribute];
  return message(id, 0x64, [4, dn.length, ...Buffer.from(dn), ...list]);
};
/** Operations of requests. */
const BIND = 0x60;
const SEARCH = 0x63;
const EXTENDED = 0x77;

interface Request {
  readonly socket: Socket;
  readonly id: number;
  readonly operation: number;
}

describe('LDAP logins with a malicious server', { timeout: 60_000 }, () => {
  const closing: (() => void)[] = [];
  afterEach(() => {
    for (const close of closing.splice(0)) close();
  });

  /** Records the operations that arrive as plain text. `answer` may replace the socket. */
  const listen = async (answer: (request: Request) => void) => {
    const plain: number[] = [];
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('data', (bytes: Buffer) => {
        plain.push(bytes[5] ?? 0);
        answer({ socket, id: bytes[4] ?? 0, operation: bytes[5] ?? 0 });
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return { port: (server.address() as AddressInfo).port, plain };
  };
  const login = (port: number, insecure = false, limits: { readonly totalMs?: number } = {}) =>
    createLdap(limits).authenticate(
      {
        url: `ldap://127.0.0.1:${port}/dc=a?uid`,
        bindDn: 'cn=admin',
        bindPassword: 'x',
        insecure,
        ca: authority.certPem,
        attributes: ['mail'],
      },
      'user',
      'password',
    );
  /** Answers a login successfully, in a TLS session. */
  const serve = (raw: Socket, certificate: { readonly cert: string; readonly key: string }): void => {
    raw.removeAllListeners('data');
    const socket = new TLSSocket(raw, { isServer: true, ...certificate });
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => {
      const [id = 0, operation] = [bytes[4], bytes[5]];
      if (operation === BIND) socket.write(result(id, 0x61));
      else if (operation === SEARCH) socket.write(Buffer.concat([entry(id), result(id, 0x65)]));
    });
  };
  const named = async (names: { readonly dns: readonly string[]; readonly ips: readonly string[] }) => {
    const pair = await issue(authority, { subject: { commonName: 'ldap' }, usages: ['server'], names, validity });
    return { cert: pair.certPem, key: pair.keyPem };
  };

  it('verifies that the certificate after StartTLS matches the host in the LDAP URL', async () => {
    const right = await named({ dns: [], ips: ['127.0.0.1'] });
    const own = await listen(({ socket, id }) => {
      socket.write(result(id, 0x78));
      serve(socket, right);
    });
    assert.equal((await login(own.port))?.dn, 'cn=a');
    const wrong = await named({ dns: ['localhost'], ips: [] });
    const other = await listen(({ socket, id }) => {
      socket.write(result(id, 0x78));
      serve(socket, wrong);
    });
    await assert.rejects(login(other.port), /altnames|IP/);
  });

  it('keeps different binary values of an attribute different', async () => {
    const valuesOf = async (uid: readonly number[]): Promise<readonly string[] | undefined> => {
      const { port } = await listen(({ socket, id, operation }) =>
        socket.write(
          operation === SEARCH ? Buffer.concat([entry(id, 'cn=a', uid), result(id, 0x65)]) : result(id, 0x61),
        ),
      );
      return (await login(port, true))?.values.get('uid');
    };
    // Two values of objectGUID that differ in bytes that are not UTF-8.
    const guid = [0x9d, 0x01, 0xee, 0xc3, 0x28, 0x41, 0x4c, 0x80, 0x81, 0xff, 0x00, 0x10, 0x20, 0x30, 0x40];
    assert.deepEqual(await valuesOf([...guid, 0xf1]), ['nQHuwyhBTICB_wAQIDBA8Q']);
    assert.deepEqual(await valuesOf([...guid, 0xf2]), ['nQHuwyhBTICB_wAQIDBA8g']);
    assert.deepEqual(await valuesOf([...Buffer.from('Zoë')]), ['Zoë']);
    assert.deepEqual(await valuesOf([...Buffer.from('\uFEFFdev')]), ['\uFEFFdev']);
  });

  it('sends no password if StartTLS is refused or answered with plain text', async () => {
    const refused = await listen(({ socket, id, operation }) => {
      socket.write(result(id, operation === EXTENDED ? 0x78 : 0x61, operation === EXTENDED ? 2 : 0));
    });
    await assert.rejects(login(refused.port));
    assert.equal(refused.plain.includes(BIND), false);
    // The results of both binds and of the search are sent in advance, before the handshake.
    const injected = await listen(({ socket, id }) => {
      const later = [result(id + 1, 0x61), entry(id + 2), result(id + 2, 0x65), result(id + 3, 0x61)];
      socket.write(Buffer.concat([result(id, 0x78), ...later]));
    });
    await assert.rejects(login(injected.port, false, { totalMs: 1_000 }));
    assert.equal(injected.plain.includes(BIND), false);
  });

  it('fails a login in time if the LDAP server does not complete the TLS handshake', async () => {
    const silent = await listen(({ socket, id }) => {
      socket.removeAllListeners('data');
      socket.resume();
      socket.write(result(id, 0x78));
    });
    await assert.rejects(login(silent.port, false, { totalMs: 500 }), /no answer within/);
  });

  it('fails a login whose LDAP search returns entries endlessly', async () => {
    const endless = await listen(({ socket, id, operation }) => {
      if (operation === BIND) return socket.write(result(id, 0x61));
      if (operation !== SEARCH) return undefined;
      const entries = Buffer.concat(Array.from({ length: 4_000 }, () => entry(id)));
      const more = (): void => {
        while (!socket.destroyed && socket.write(entries));
      };
      socket.on('drain', more);
      return more();
    });
    const began = performance.now();
    await assert.rejects(login(endless.port, true), /more than/);
    assert.ok(performance.now() - began < 8_000);
  });

  it('accepts only the LDAP bind result success, and follows no referral', async () => {
    const elsewhere = await listen(() => {});
    const uri = [...Buffer.from(`ldap://127.0.0.1:${elsewhere.port}/`)];
    for (const code of [1, 2, 10, 14, 32, 49, 53]) {
      let binds = 0;
      const { port } = await listen(({ socket, id, operation }) => {
        const referral = [0x0a, 1, code, 4, 0, 4, 0, 0xa3, uri.length + 2, 4, uri.length, ...uri];
        if (operation === SEARCH) {
          const reference = message(id, 0x73, [4, uri.length, ...uri]);
          socket.write(Buffer.concat([entry(id), reference, result(id, 0x65)]));
        } else if (operation === BIND) socket.write(++binds === 1 ? result(id, 0x61) : message(id, 0x61, referral));
      });
      const found = await login(port, true).catch(() => undefined);
      assert.equal(found, undefined, `result ${code}`);
    }
    assert.deepEqual(elsewhere.plain, []);
  });

  it('does not bind with the empty name of an LDAP entry', async () => {
    const { port } = await listen(({ socket, id, operation }) => {
      if (operation === BIND) socket.write(result(id, 0x61));
      else if (operation === SEARCH) socket.write(Buffer.concat([entry(id, ''), result(id, 0x65)]));
    });
    assert.equal(await login(port, true), undefined);
  });
});
