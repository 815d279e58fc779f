/** Logins with OpenLDAP's slapd, if it is installed. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ldap, parseLdapUrl } from '../../../../src/openshift/oauth/io/ldap.ts';

const SLAPD = '/usr/sbin/slapd';
const skip = existsSync(SLAPD) ? false : `${SLAPD} is not installed`;

const CONFIG = (directory: string) => `
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile ${directory}/slapd.pid
database mdb
suffix "dc=example,dc=com"
rootdn "cn=admin,dc=example,dc=com"
rootpw admin-secret
directory ${directory}/data
`;
const person = (uid: string) => `
dn: uid=${uid},ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: ${uid}
cn: ${uid} Person
sn: Person
mail: ${uid}@example.com
userPassword: password-${uid}
`;
const ENTRIES = `dn: dc=example,dc=com
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: ou=people,dc=example,dc=com
objectClass: organizationalUnit
ou: people
${person('dev')}${person('ops')}`;

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

describe('LDAP', { skip }, () => {
  let directory = '';
  let server: ChildProcess | undefined;
  let url = '';
  const authenticate = (user: string, password: string, filter = '(objectClass=person)') =>
    ldap.authenticate(
      {
        url: `${url}/ou=people,dc=example,dc=com?uid?sub?${encodeURIComponent(filter)}`,
        bindDn: 'cn=admin,dc=example,dc=com',
        bindPassword: 'admin-secret',
        insecure: true,
        ca: undefined,
        attributes: ['cn', 'mail'],
      },
      user,
      password,
    );
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'os-login-slapd-'));
    await mkdir(join(directory, 'data'));
    await writeFile(join(directory, 'slapd.conf'), CONFIG(directory));
    await writeFile(join(directory, 'entries.ldif'), ENTRIES);
    execFileSync('/usr/sbin/slapadd', ['-f', join(directory, 'slapd.conf'), '-l', join(directory, 'entries.ldif')]);
    url = `ldap://127.0.0.1:${await freePort()}`;
    server = spawn(SLAPD, ['-f', join(directory, 'slapd.conf'), '-h', url, '-d', '0'], { stdio: 'ignore' });
    for (let attempt = 0; ; attempt++)
      try {
        await authenticate('dev', 'x');
        break;
      } catch (error) {
        if (attempt > 100) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
  });
  after(async () => {
    server?.kill('SIGTERM');
    await rm(directory, { recursive: true, force: true });
  });

  it('LDAP returns the entry of a user whose password is correct', async () => {
    const entry = await authenticate('dev', 'password-dev');
    assert.equal(entry?.dn, 'uid=dev,ou=people,dc=example,dc=com');
    assert.deepEqual([entry?.values.get('cn'), entry?.values.get('mail')], [['dev Person'], ['dev@example.com']]);
  });

  it('LDAP returns no entry for a wrong password, an unknown user, or a user that the filter excludes', async () => {
    assert.equal(await authenticate('dev', 'password-ops'), undefined);
    assert.equal(await authenticate('who', 'password-dev'), undefined);
    assert.equal(await authenticate('dev', 'password-dev', '(uid=ops)'), undefined);
  });

  it('LDAP escapes the user name in the search filter', async () => {
    for (const name of ['*)(uid=*', '*', 'd*', 'dev)(objectClass=*', '\\2a', 'dev\0'])
      for (const password of ['password-dev', 'password-ops', 'admin-secret'])
        assert.equal(await authenticate(name, password), undefined, name);
  });
});

describe('LDAP URLs', () => {
  it('parses all parts of an LDAP URL and names an invalid part', () => {
    assert.deepEqual(parseLdapUrl('ldaps://h:636/ou=a%20b,dc=c?uid?one?(objectClass=person)'), {
      server: 'ldaps://h:636',
      base: 'ou=a b,dc=c',
      attribute: 'uid',
      scope: 'one',
      filter: '(objectClass=person)',
    });
    assert.throws(() => parseLdapUrl('http://h/'), /ldap\.url/);
    assert.throws(() => parseLdapUrl('ldap://h/dc=c?uid?all'), /scope "all"/);
  });
});
