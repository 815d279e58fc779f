import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ApiValues, readApiArguments } from '../../../src/apiserver/config/index.ts';
import type { ApiServerConfig } from '../../../src/apiserver/index.ts';
import { silentLog } from '../../../src/base/log.ts';
import { followCertificates } from '../../../src/host/apiserver/certificates.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/certificate.ts';

test('reloads the server certificate and the client CAs, and ignores mismatched files', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'certificates-'));
  const validity = lifetimeFrom(Date.now(), 1);
  const [ca, other] = await Promise.all([createAuthority('a', validity), createAuthority('b', validity)]);
  const pair = () => issue(ca, { subject: { commonName: 's' }, usages: ['server'], validity });
  const [first, second] = await Promise.all([pair(), pair()]);
  const write = (name: string, text: string) => writeFile(join(directory, name), text, { mode: 0o600 });
  const errors: string[] = [];
  const log = { ...silentLog, error: (_: string, facts?: object) => void errors.push(JSON.stringify(facts)) };
  try {
    await write('s.crt', first.certPem);
    await write('s.key', first.keyPem);
    await write('ca.crt', ca.certPem);
    const values = new ApiValues((path) => join(directory, path));
    readApiArguments(['--tls-cert-file=s.crt', '--tls-private-key-file=s.key', '--client-ca-file=ca.crt'], values);
    const followed = await followCertificates(values, {} as ApiServerConfig, { referredToBy: 'test' }, log);
    followed.stop();
    let changes = 0;
    followed.subscribe(() => {
      changes += 1;
    });
    const served = { certificate: first.certPem, key: first.keyPem };
    assert.deepEqual(followed.current, { serving: served, clientCa: ca.certPem });
    // A pair is replaced in two steps, and a bundle that is being written may be empty.
    for (const [name, text, complaint] of [
      ['s.crt', second.certPem, /s\.key is not the key of .*s\.crt/],
      ['s.crt', 'no PEM', /PEM|ASN|asn/i],
      ['s.crt', first.certPem, undefined],
      ['ca.crt', '', /ca\.crt holds no certificate/],
    ] as const) {
      await write(name, text);
      await followed.refresh();
      if (complaint !== undefined) assert.match(errors.at(-1) ?? '', complaint);
      assert.deepEqual([followed.current, changes], [{ serving: served, clientCa: ca.certPem }, 0]);
    }
    await write('s.crt', second.certPem);
    await write('s.key', second.keyPem);
    await write('ca.crt', `${ca.certPem}${other.certPem}`);
    await followed.refresh();
    assert.deepEqual(
      [followed.current, changes],
      [{ serving: { certificate: second.certPem, key: second.keyPem }, clientCa: `${ca.certPem}${other.certPem}` }, 1],
    );
    await followed.refresh();
    assert.equal(changes, 1);
  } finally {
    await rm(directory, { recursive: true });
  }
});
