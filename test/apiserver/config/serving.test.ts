import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import { ApiValues, readApiArguments } from '../../../src/apiserver/config/index.ts';
import type { ApiServerConfig } from '../../../src/apiserver/index.ts';
import { silentLog } from '../../../src/base/log.ts';
import { followCertificates } from '../../../src/host/apiserver/certificates.ts';
import { curvesOf, namedServing, servingLimits } from '../../../src/host/apiserver/serving.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/index.ts';

const valuesOf = (argv: readonly string[], locate = (path: string) => path): ApiValues => {
  const values = new ApiValues(locate);
  readApiArguments(argv, values);
  return values;
};
const limits = (...argv: string[]) => servingLimits(valuesOf(argv));

describe('serving flags', () => {
  it('applies serving flags to the server', () => {
    assert.deepEqual(limits(), {});
    assert.deepEqual(
      limits(
        '--http2-max-streams-per-connection=9',
        '--goaway-chance=.01',
        '--permit-port-sharing',
        '--disable-http2-serving',
        '--shutdown-delay-duration=1m',
        '--cors-allowed-origins=^https://a\\.test$,//b\\.test(:|$)',
        '--strict-transport-security-directives=max-age=31536000,includeSubDomains',
      ),
      {
        browsers: {
          allowedOrigins: ['^https://a\\.test$', '//b\\.test(:|$)'],
          transportSecurity: 'max-age=31536000; includeSubDomains',
        },
        goawayChance: 0.01,
        maxStreams: 9,
        sharesPort: true,
        shutdownDelaySeconds: 60,
        withoutHttp2: true,
      },
    );
    assert.equal(
      curvesOf(valuesOf(['--tls-curve-preferences=4588,29', '--tls-curve-preferences=23'])),
      'X25519MLKEM768:X25519:prime256v1',
    );
    assert.equal(curvesOf(valuesOf([])), undefined);
  });

  it('rejects invalid values of serving flags with the flag', () => {
    for (const [argument, complaint] of [
      ['--http2-max-streams-per-connection=-1', /http2-max-streams-per-connection: must be 0 to/],
      ['--goaway-chance=0.5', /goaway-chance: must be 0 to 0\.02/],
      ['--shutdown-delay-duration=-1s', /shutdown-delay-duration: must not be negative/],
      ['--cors-allowed-origins=example.com', /"example\.com" does not anchor the start and the end of the host/],
      ['--cors-allowed-origins=//example', /"\/\/example" does not anchor/],
      ['--cors-allowed-origins=^(https://a$', /is not a valid pattern/],
      ['--strict-transport-security-directives=max-age=x', /"max-age=x" is not one of/],
    ] as const)
      assert.throws(() => limits(argument), complaint);
    assert.throws(() => curvesOf(valuesOf(['--tls-curve-preferences=1'])), /"1" is not a supported group/);
    assert.throws(() => curvesOf(valuesOf(['--tls-curve-preferences=29,29'])), /a group is given twice/);
  });
});

test('selects certificates by the names in the flag before the names in the certificate, and reloads their files', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'named-'));
  const validity = lifetimeFrom(Date.now(), 1);
  const write = (name: string, text: string) => writeFile(join(directory, name), text, { mode: 0o600 });
  try {
    const ca = await createAuthority('ca', validity);
    const make = (commonName: string) =>
      issue(ca, {
        subject: { commonName },
        usages: ['server'],
        names: { dns: ['*.own.test'], ips: ['192.0.2.1'] },
        validity,
      });
    const [first, second] = await Promise.all([make('own.test'), make('10.0.0.1')]);
    await write('a.crt', first.certPem);
    await write('a.key', first.keyPem);
    await write('b.crt', second.certPem);
    await write('b.key', second.keyPem);
    const argv = ['--tls-sni-cert-key=a.crt,a.key', '--tls-sni-cert-key', 'b.crt,b.key:X.test,*.x.test'];
    const values = valuesOf(argv, (path) => join(directory, path));
    const text = (path: string) => readFile(path, 'utf8');
    const a = { names: ['own.test', '*.own.test'], certificate: first.certPem, key: first.keyPem };
    const b = { names: ['x.test', '*.x.test'], certificate: second.certPem, key: second.keyPem };
    assert.deepEqual(await namedServing(values, { text, secret: text }), { namedServing: [b, a] });
    for (const bad of ['a.crt', 'a.crt,a.key:', 'a.crt,a.key,b', 'a.crt,a.key:-x'])
      await assert.rejects(
        namedServing(valuesOf([`--tls-sni-cert-key=${bad}`]), { text, secret: text }),
        /is not CERT,KEY/,
      );
    const wrong = valuesOf(['--tls-sni-cert-key=a.crt,b.key'], (path) => join(directory, path));
    await assert.rejects(namedServing(wrong, { text, secret: text }), /b\.key is not the key of .*a\.crt/);
    const serving = { certificate: 's', key: 'k' };
    const followed = await followCertificates(
      values,
      { serving } as ApiServerConfig,
      { referredToBy: 'test' },
      silentLog,
    );
    followed.stop();
    assert.deepEqual(followed.current, { serving, named: [b, a] });
    await write('b.crt', first.certPem);
    await followed.refresh();
    assert.deepEqual(followed.current, { serving, named: [b, a] });
    await write('b.key', first.keyPem);
    await followed.refresh();
    assert.deepEqual(followed.current, {
      serving,
      named: [{ ...b, certificate: first.certPem, key: first.keyPem }, a],
    });
  } finally {
    await rm(directory, { recursive: true });
  }
});
