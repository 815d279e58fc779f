/** Authorities of a system without certificates. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { rootCertificates } from 'node:tls';

const MODULE = join(import.meta.dirname, '../../../src/wire/outbound/authorities.ts');

test('without certificates of the system, uses the authorities of Node.js and prints nothing', () => {
  const script = `import { SystemAuthorities } from '${MODULE}'; console.log(new SystemAuthorities([]).all().length);`;
  const env = { PATH: process.env['PATH'], SSL_CERT_FILE: '/nonexistent/file', SSL_CERT_DIR: '/nonexistent/directory' };
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    env,
  });
  assert.equal(stderr, '');
  assert.equal(stdout, `${rootCertificates.length}\n`);
});
