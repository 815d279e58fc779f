/**
 * `npm run test:upstream:login` tests the login page in a real Chromium without scripts, `oc adm groups sync` with a
 * real slapd, and logins with dex. Steps whose programs are not installed are skipped with the reason. Needs root, `oc`
 * in HYPEREDGE_OC, and Go with a module proxy for dex. An argument selects steps by a part of their name.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { hashSync } from 'bcryptjs';
import { Appliance, eventually } from '../e2e/harness.ts';
import { dexProviders, loginsAtDex } from './dex/dex.ts';

const OC = process.env['HYPEREDGE_OC'] ?? '';
const CHROMIUM = '/usr/bin/chromium';
const SLAPD = '/usr/sbin/slapd';
const GO = '/usr/local/go/bin/go';
const PASSWORD = 'a-good-password';
const SERVER = 'https://127.0.0.1:8443';

type Answer = Record<string, unknown>;

/** Client for the DevTools protocol over pipes. Messages end with NUL. */
class Browser {
  readonly #child: ChildProcess;
  readonly #input: Writable;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #next = 1;
  #session: string | undefined;

  constructor(holderPid: number, profile: string) {
    const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'];
    const own = ['--ignore-certificate-errors', '--remote-debugging-pipe', `--user-data-dir=${profile}`];
    this.#child = spawn('nsenter', ['-t', String(holderPid), '-n', CHROMIUM, ...flags, ...own, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    });
    this.#input = this.#child.stdio[3] as Writable;
    let text = '';
    (this.#child.stdio[4] as Readable).setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      for (let end = text.indexOf('\0'); end >= 0; end = text.indexOf('\0')) {
        const message = JSON.parse(text.slice(0, end)) as { id?: number; result?: Answer; error?: Answer };
        text = text.slice(end + 1);
        const answer = message.id === undefined ? undefined : this.#waiting.get(message.id);
        if (message.id !== undefined) this.#waiting.delete(message.id);
        answer?.(message.result ?? { error: message.error });
      }
    });
  }

  send(method: string, params: object = {}): Promise<Answer> {
    const id = this.#next++;
    const session = this.#session === undefined ? {} : { sessionId: this.#session };
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#input.write(`${JSON.stringify({ id, method, params, ...session })}\0`);
    });
  }

  async open(): Promise<void> {
    const { targetInfos } = await this.send('Target.getTargets');
    const page = (targetInfos as { type: string; targetId: string }[]).find(({ type }) => type === 'page');
    const attached = await this.send('Target.attachToTarget', { targetId: page?.targetId, flatten: true });
    this.#session = String(attached['sessionId']);
    await this.send('Page.enable');
    await this.send('Emulation.setScriptExecutionDisabled', { value: true });
  }

  async html(): Promise<string> {
    const { root } = await this.send('DOM.getDocument');
    const { nodeId } = root as { nodeId: number };
    return String((await this.send('DOM.getOuterHTML', { nodeId }))['outerHTML']);
  }

  async type(selector: string, text: string): Promise<void> {
    const { root } = await this.send('DOM.getDocument');
    const { nodeId } = root as { nodeId: number };
    const found = await this.send('DOM.querySelector', { nodeId, selector });
    await this.send('DOM.focus', { nodeId: found['nodeId'] });
    await this.send('Input.insertText', { text });
  }

  async enter(): Promise<void> {
    const key = { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' };
    for (const type of ['keyDown', 'keyUp']) await this.send('Input.dispatchKeyEvent', { type, ...key });
  }

  close(): void {
    this.#child.kill('SIGKILL');
  }
}

async function pageInChromium(host: Appliance, scratch: string): Promise<void> {
  const browser = new Browser(host.holderPid, join(scratch, 'chromium'));
  try {
    await browser.open();
    await browser.send('Page.navigate', { url: `${SERVER}/oauth/token/request` });
    const shows = (what: string, pattern: RegExp): Promise<string> =>
      eventually(what, 60_000, async () => {
        const html = await browser.html();
        if (pattern.test(html)) return html;
        throw new Error(html.slice(0, 2_000));
      });
    const page = await shows('the login page', /name="password"/);
    assert.doesNotMatch(page, /<script/i);
    await browser.type('input[name=username]', 'dev');
    await browser.type('input[name=password]', 'wrong');
    await browser.enter();
    await shows('a refusal', /role="alert"/);
    await browser.send('Page.navigate', { url: `${SERVER}/oauth/token/request` });
    await shows('the login page again', /name="password"/);
    await browser.type('input[name=username]', 'dev');
    await browser.type('input[name=password]', PASSWORD);
    await browser.enter();
    await shows('the button', /Display token/);
    await browser.type('button', '');
    await browser.enter();
    const shown = await shows('a token', /<pre>sha256~[\w-]{20,}/);
    const [, token = ''] = /<pre>(sha256~[\w-]{20,})/.exec(shown) ?? [];
    const ca = join(host.root, 'etc/origin/master/ca.crt');
    const own = await host.inside('curl', [
      ...['-sS', '--cacert', ca, '-H', `Authorization: Bearer ${token}`],
      `${SERVER}/apis/user.openshift.io/v1/users/~`,
    ]);
    assert.match(own.stdout, /"name": ?"dev"/);
  } finally {
    browser.close();
  }
}

const CONFIG = (directory: string): string => `include /etc/ldap/schema/core.schema
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
const ENTRIES = `dn: dc=example,dc=com
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: ou=people,dc=example,dc=com
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=example,dc=com
objectClass: organizationalUnit
ou: groups

dn: uid=dev,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: dev
cn: dev
sn: Person

dn: cn=builders,ou=groups,dc=example,dc=com
objectClass: groupOfNames
cn: builders
member: uid=dev,ou=people,dc=example,dc=com
`;
const SYNC = `kind: LDAPSyncConfig
apiVersion: v1
url: ldap://127.0.0.1:3389
insecure: true
bindDN: cn=admin,dc=example,dc=com
bindPassword: admin-secret
rfc2307:
  groupsQuery: {baseDN: "ou=groups,dc=example,dc=com", scope: sub, derefAliases: never, filter: (objectClass=groupOfNames)}
  groupUIDAttribute: dn
  groupNameAttributes: [cn]
  groupMembershipAttributes: [member]
  usersQuery: {baseDN: "ou=people,dc=example,dc=com", scope: sub, derefAliases: never}
  userUIDAttribute: dn
  userNameAttributes: [uid]
`;

async function groupsOfSlapd(host: Appliance, scratch: string): Promise<void> {
  await mkdir(join(scratch, 'data'));
  await writeFile(join(scratch, 'slapd.conf'), CONFIG(scratch));
  await writeFile(join(scratch, 'entries.ldif'), ENTRIES);
  await writeFile(join(scratch, 'sync.yaml'), SYNC);
  execFileSync('/usr/sbin/slapadd', ['-f', join(scratch, 'slapd.conf'), '-l', join(scratch, 'entries.ldif')]);
  const at = ['-f', join(scratch, 'slapd.conf'), '-h', 'ldap://127.0.0.1:3389', '-d', '0'];
  const slapd = host.spawnInside(SLAPD, at);
  try {
    const sync = ['adm', 'groups', 'sync', `--sync-config=${join(scratch, 'sync.yaml')}`, '--confirm'];
    await eventually('groups sync', 60_000, async () => {
      const ran = await host.kubectl(sync, { path: OC });
      if (ran.code === 0) return true;
      throw new Error(ran.stderr);
    });
    const { users, metadata } = JSON.parse(await host.must(['get', 'group', 'builders', '-o', 'json']));
    assert.deepEqual(users, ['dev']);
    assert.equal(metadata.annotations['openshift.io/ldap.uid'], 'cn=builders,ou=groups,dc=example,dc=com');
    const prune = ['adm', 'groups', 'prune', `--sync-config=${join(scratch, 'sync.yaml')}`, '--confirm'];
    await host.must(prune, { path: OC });
    await host.must(['get', 'group', 'builders']);
  } finally {
    slapd.kill('SIGTERM');
  }
}

const scratch = await mkdtemp(join(tmpdir(), 'he-login-'));
const host = await Appliance.create();
try {
  const directory = join(host.root, 'etc/origin');
  await mkdir(join(directory, 'master'), { recursive: true });
  const users = join(directory, 'master/users.htpasswd');
  await writeFile(users, `dev:${hashSync(PASSWORD, 10)}\n`, { mode: 0o600 });
  const provider = `  - {name: local, mappingMethod: claim, htpasswd: {file: ${users}}}\n`;
  const all = `${provider}${await dexProviders(join(directory, 'master'))}`;
  const bootstrap = `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nopenshift:\n  identityProviders:\n${all}`;
  await writeFile(join(directory, 'bootstrap.yaml'), bootstrap, { mode: 0o600 });
  await host.start(180_000);
  const steps: readonly [string, string | undefined, () => Promise<void>][] = [
    [
      'the login page in Chromium without scripts',
      existsSync(CHROMIUM) ? undefined : `${CHROMIUM} is not installed: apt-get install chromium`,
      () => pageInChromium(host, scratch),
    ],
    [
      'oc adm groups sync with slapd',
      existsSync(SLAPD) && existsSync(OC) ? undefined : 'slapd is not installed, or HYPEREDGE_OC names no oc',
      () => groupsOfSlapd(host, scratch),
    ],
    [
      'logins at dex by OpenID Connect',
      existsSync(GO) ? undefined : `${GO} is not there`,
      () => loginsAtDex(host, join(directory, 'master'), scratch),
    ],
  ];
  const [, , picked = ''] = process.argv;
  for (const [name, missing, step] of steps.filter(([each]) => each.includes(picked))) {
    if (missing !== undefined) {
      console.log(`skipped  ${name}: ${missing}`);
      continue;
    }
    const begin = performance.now();
    try {
      await step();
      console.log(`passed   ${name} (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
    } catch (error) {
      process.exitCode = 1;
      console.log(`failed   ${name}: ${error instanceof Error ? error.stack : String(error)}`);
    }
  }
} finally {
  await host.stop();
  await rm(scratch, { recursive: true, force: true });
}
