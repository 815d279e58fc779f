/**
 * Logins with dex, a real OpenID provider. The server of the Go module `github.com/dexidp/dex` is built in the first
 * run. Each case has its own dex in the network of the appliance.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, glob, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/index.ts';
import { type Appliance, eventually } from '../../e2e/harness.ts';
import { PROGRAMS } from '../sources/modules.ts';

const run = promisify(execFile);
/** The last release whose module path is in the Go proxy. */
const DEX = 'github.com/dexidp/dex@v2.13.0+incompatible';
const PINNED = ['gopkg.in/square/go-jose.v2@v2.6.0', 'github.com/coreos/go-oidc@v2.3.0+incompatible'];
const SERVER = 'https://127.0.0.1:8443';
const SECRET = 'good-secret';
const USER = 'kilgore@kilgore.trout';
const DAY_SECONDS = 86_400;

interface Case {
  readonly name: string;
  readonly port: number;
  /** Issuer that dex reports, if it differs from the configured one. */
  readonly issuer?: string;
  /** Configured client secret. */
  readonly secret: string;
  readonly rotateSeconds: number;
  readonly skewSeconds: number;
  /** Log message of a failing login; undefined if it succeeds. */
  readonly failure: RegExp | undefined;
}

const plain = { secret: SECRET, rotateSeconds: 3_600, skewSeconds: 0, failure: undefined };
const CASES: readonly Case[] = [
  { ...plain, name: 'dex', port: 5_551, rotateSeconds: 3 },
  { ...plain, name: 'dex-secret', port: 5_552, secret: 'another-secret', failure: /token: status 401/ },
  { ...plain, name: 'dex-issuer', port: 5_553, issuer: 'https://localhost:5553/dex', failure: /issuer is / },
  { ...plain, name: 'dex-ahead', port: 5_554, skewSeconds: 240 },
  { ...plain, name: 'dex-behind', port: 5_555, skewSeconds: -240 - DAY_SECONDS },
  { ...plain, name: 'dex-expired', port: 5_556, skewSeconds: -400 - DAY_SECONDS, failure: /exp\\?" claim/ },
];

const issuerOf = ({ port }: Case): string => `https://127.0.0.1:${port}/dex`;

/** Builds dex below `PROGRAMS` if it does not exist. */
export async function buildDex(): Promise<{ readonly program: string; readonly web: string }> {
  const home = join(PROGRAMS, 'dex');
  const module = join(home, 'module');
  const program = join(home, 'dex');
  await mkdir(module, { recursive: true });
  const go = async (...args: string[]): Promise<string> => {
    const env = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod -buildvcs=false' };
    const options = { cwd: module, env, maxBuffer: 1 << 26 };
    return (await run('nice', ['-n', '19', 'go', ...args], options)).stdout;
  };
  const source = join(import.meta.dirname, 'dex.go');
  const built = join(module, 'main.go');
  const isCurrent = (await readFile(built, 'utf8').catch(() => '')) === (await readFile(source, 'utf8'));
  if (!isCurrent) {
    console.log(`building ${DEX}`);
    await rm(program, { force: true });
    await writeFile(join(module, 'go.mod'), 'module login\n\ngo 1.26\n');
    await copyFile(source, join(module, 'new.go'));
    await rm(built, { force: true });
    await go('get', DEX, ...PINNED);
    await go('build', '-p', '2', '-o', program, 'new.go');
    await rm(join(module, 'new.go'));
    await copyFile(source, built);
  }
  const directory = (await go('list', '-m', '-f', '{{.Dir}}', DEX.slice(0, DEX.indexOf('@')))).trim();
  return { program, web: join(directory, 'web') };
}

/** Identity providers for the bootstrap file. Their files are in `directory`. */
export async function dexProviders(directory: string): Promise<string> {
  const ca = await createAuthority('dex-ca', lifetimeFrom(Date.now(), 10));
  const leaf = await issue(ca, {
    subject: { commonName: 'dex' },
    usages: ['server'],
    names: { dns: ['localhost'], ips: ['127.0.0.1'] },
    validity: lifetimeFrom(Date.now(), 5),
  });
  const put = (name: string, text: string): Promise<void> => writeFile(join(directory, name), text, { mode: 0o600 });
  await put('dex-ca.crt', ca.certPem);
  await put('dex.crt', leaf.certPem);
  await put('dex.key', leaf.keyPem);
  for (const { name, secret } of CASES) await put(`${name}.secret`, secret);
  return CASES.map((each) => {
    const files = `clientSecretFile: ${join(directory, `${each.name}.secret`)}, caFile: ${join(directory, 'dex-ca.crt')}`;
    const claims = '{preferredUsername: [preferred_username, email], name: [name], email: [email], groups: [groups]}';
    const scopes = 'extraScopes: [profile, email, groups]';
    const openId = `{issuer: '${issuerOf(each)}', clientID: hyperedge, ${files}, ${scopes}, claims: ${claims}}`;
    return `  - {name: ${each.name}, mappingMethod: add, openID: ${openId}}\n`;
  }).join('');
}

/** Runs all cases with the directory of `dexProviders`. */
export async function loginsAtDex(host: Appliance, directory: string, scratch: string): Promise<void> {
  const { program, web } = await buildDex();
  const authorities = join(scratch, 'authorities.pem');
  const own = await readFile(join(host.root, 'etc/origin/master/ca.crt'), 'utf8');
  await writeFile(authorities, `${own}\n${await readFile(join(directory, 'dex-ca.crt'), 'utf8')}`);
  for (const each of CASES) {
    const settings = {
      listen: `127.0.0.1:${each.port}`,
      issuer: each.issuer ?? issuerOf(each),
      certificate: join(directory, 'dex.crt'),
      key: join(directory, 'dex.key'),
      web,
      secret: SECRET,
      redirects: [`${SERVER}/oauth2callback/${each.name}`],
      rotateSeconds: each.rotateSeconds,
      skewSeconds: each.skewSeconds,
    };
    const dex = host.spawnInside(program, [JSON.stringify(settings)]);
    try {
      const discovery = `${issuerOf(each)}/.well-known/openid-configuration`;
      await eventually(each.name, 30_000, async () => {
        const { code, stderr } = await host.inside('curl', ['-sS', '--cacert', authorities, discovery]);
        if (code !== 0) throw new Error(stderr);
        return true;
      });
      await login(host, each, authorities, scratch);
      if (each.rotateSeconds > 60) continue;
      // By now the keys of the first login were replaced.
      await new Promise((resolve) => setTimeout(resolve, 2_000 * each.rotateSeconds));
      await login(host, each, authorities, scratch);
    } finally {
      dex.kill('SIGKILL');
    }
  }
}

async function login(host: Appliance, { name, failure }: Case, authorities: string, scratch: string): Promise<void> {
  const jar = join(scratch, `${name}.jar`);
  await rm(jar, { force: true });
  const curl = async (...args: string[]): Promise<string> =>
    (await host.inside('curl', ['-sS', '-L', '--cacert', authorities, '-b', jar, '-c', jar, ...args])).stdout;
  const page = await curl(`${SERVER}/login/${name}?then=${encodeURIComponent('/oauth/token/request')}`);
  if (failure !== undefined) {
    assert.match(page, /did not log you in/, name);
    // The log file is written with a short delay.
    await eventually(`the log of ${name}`, 10_000, async () => {
      const lines: string[] = [];
      for await (const path of glob(join(host.root, 'var/log/pods/*/*/*.log')))
        lines.push(...(await readFile(path, 'utf8')).split('\n'));
      const own = lines.filter((line) => line.includes('login failed') && line.includes(`provider=${name} `));
      assert.match(own.at(-1) ?? '', failure, own.join('\n'));
      return true;
    });
    return;
  }
  const field = (wanted: string): string =>
    (new RegExp(`name="${wanted}" value="([^"]*)"`).exec(page)?.[1] ?? '').replaceAll('&amp;', '&');
  assert.match(page, /Display token/, `${name}: ${page.slice(0, 1_000)}`);
  const form = ['code', 'state', 'csrf'].flatMap((each) => ['--data-urlencode', `${each}=${field(each)}`]);
  const shown = await curl(...form, `${SERVER}/oauth/token/display`);
  const [, token = ''] = /<pre>(sha256~[\w-]{20,})/.exec(shown) ?? [];
  const me = await curl('-H', `Authorization: Bearer ${token}`, `${SERVER}/apis/user.openshift.io/v1/users/~`);
  const { metadata, fullName, groups, identities } = JSON.parse(me);
  assert.deepEqual([metadata.name, fullName], [USER, 'Kilgore Trout']);
  assert.ok(groups.includes('authors'), me);
  const identity = identities.find((each: string) => each.startsWith(`${name}:`));
  const stored = JSON.parse(await host.must(['get', 'identity', identity, '-o', 'json']));
  assert.equal(stored.extra.email, USER);
}
