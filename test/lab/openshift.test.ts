/**
 * OpenShift's APIs on three hosts with a real systemd: a user logs in at each master, requests a project and uses each
 * host's router; must-gather runs without a registry; the profile is changed and changed back. Needs `oc` (release
 * 4.12) in HYPEREDGE_OC. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { hashSync } from 'bcryptjs';
import { HELLO_IMAGE } from '../../build/hello-image.ts';
import { eventually, type Ran, type RunOptions, run } from '../e2e/harness.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const OC = process.env['HYPEREDGE_OC'] ?? '';
const missing = (await whyNoNspawn()) ?? (existsSync(OC) ? undefined : 'HYPEREDGE_OC names no oc');
if (missing !== undefined) console.log(`not run: ${missing}`);

const PASSWORD = 'a-good-password';
const DOMAIN = 'apps.lab.example';
const HOSTNAME = `web-shop.${DOMAIN}`;

const dropIn = (profile: string): string => `apiVersion: hyperedge.dev/v1
kind: Bootstrap
openshift:
  profile: ${profile}
  domain: ${DOMAIN}
  identityProviders:
  - {name: local, mappingMethod: claim, htpasswd: {file: /etc/origin/users.htpasswd}}
`;

describe('oc with three hosts', { skip: missing ?? false, timeout: 900_000 }, () => {
  let cluster: LabCluster;
  let first: NspawnHost;

  /** Runs oc in the host's network with files of this machine. */
  const oc = (host: NspawnHost, kubeconfig: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> =>
    run('nsenter', ['-t', String(host.pid1), '-n', OC, ...args], {
      timeoutMs: 120_000,
      ...options,
      env: { KUBECONFIG: kubeconfig, HOME: host.root },
    });
  const must = async (
    host: NspawnHost,
    kubeconfig: string,
    args: readonly string[],
    options: RunOptions = {},
  ): Promise<string> => {
    const ran = await oc(host, kubeconfig, args, options);
    assert.equal(ran.code, 0, `oc ${args.join(' ')}: ${ran.stdout}${ran.stderr}`);
    return ran.stdout;
  };
  const admin = (host: NspawnHost): string => join(host.root, 'etc/origin/master/admin.kubeconfig');
  const dev = (host: NspawnHost): string => join(host.root, 'root/dev.kubeconfig');
  const setProfile = async (host: NspawnHost, profile: string): Promise<void> => {
    const directory = join(host.root, 'etc/origin/bootstrap.yaml.d');
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, 'openshift.yaml'), dropIn(profile), { mode: 0o600 });
  };
  const logIn = async (host: NspawnHost): Promise<void> => {
    const ca = join(host.root, 'etc/origin/master/ca.crt');
    const server = `https://${host.address}:8443`;
    const args = ['login', '-u', 'dev', '-p', PASSWORD, `--certificate-authority=${ca}`, server];
    await eventually(`login at ${host.name}`, 90_000, async () =>
      (await oc(host, dev(host), args)).code === 0 ? true : undefined,
    );
    assert.equal((await must(host, dev(host), ['whoami'])).trim(), 'dev');
  };
  const routed = async (): Promise<void> => {
    for (const host of cluster.hosts)
      await eventually(`the route at ${host.name}`, 90_000, async () => {
        const resolve = `${HOSTNAME}:80:${host.address}`;
        const from = ['-t', String(first.pid1), '-n', 'curl', '-sS', '--max-time', '5', '--resolve', resolve];
        const ran = await run('nsenter', [...from, `http://${HOSTNAME}/`]);
        return /served/.test(ran.stdout) ? true : undefined;
      });
  };

  before(async () => {
    cluster = await LabCluster.create(3, 'oc');
    first = cluster.host(0);
    for (const host of cluster.hosts) {
      await mkdir(join(host.root, 'etc/origin'), { recursive: true });
      await writeFile(join(host.root, 'etc/origin/users.htpasswd'), `dev:${hashSync(PASSWORD, 8)}\n`, { mode: 0o600 });
      await setProfile(host, 'okd');
    }
    await cluster.install(first);
    const join3 = await cluster.joinCommand(first, '--roles', 'master,etcd,node', '--ttl', '1h');
    await Promise.all(cluster.hosts.slice(1).map((host) => cluster.install(host, join3)));
    await cluster.untilReady(first, cluster.hosts, 180_000);
    await cluster.untilVoters(first, cluster.hosts, 180_000);
    await cluster.importImage();
  });
  after(() => cluster?.stop());

  test('logs a user in at each master and creates a project', async () => {
    for (const host of cluster.hosts) await logIn(host);
    await must(first, dev(first), ['new-project', 'shop']);
    assert.match(await must(first, dev(first), ['status']), /In project shop/);
    const projects = await must(cluster.host(2), dev(cluster.host(2)), ['projects', '-q']);
    assert.equal(projects.trim(), 'shop');
  });

  test('serves a route at the router of each host', async () => {
    const command = 'mkdir -p /tmp/w; echo served > /tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w';
    const user = dev(first);
    const create = ['create', 'deployment', 'web', `--image=${HELLO_IMAGE}`, '--port=8080', '--replicas=3'];
    await must(first, user, [...create, '--', '/bin/sh', '-c', command]);
    await must(first, user, ['expose', 'deployment/web', '--port=80', '--target-port=8080']);
    await must(first, user, ['expose', 'svc/web']);
    await must(first, user, ['rollout', 'status', 'deployment/web', '--timeout=100s']);
    await routed();
  });

  test('runs must-gather and shows node logs without a registry', async () => {
    const directory = join(first.root, 'root/gathered');
    const log = await must(first, admin(first), ['adm', 'must-gather', `--dest-dir=${directory}`], {
      timeoutMs: 240_000,
    });
    assert.match(log, /0 parts are missing/);
    const [image = ''] = (await readdir(directory)).filter((name) => name.startsWith('sha256-'));
    const nodes = await readdir(join(directory, image, 'cluster-scoped-resources/core/nodes'));
    assert.equal(nodes.length, 3);
    assert.equal((await readdir(join(directory, image, 'host_service_logs'))).length, 3);
    const journal = await must(first, admin(first), ['adm', 'node-logs', cluster.host(1).name, '-u', 'kubelet']);
    assert.match(journal, /hyperedge/);
    const debug = ['debug', `node/${cluster.host(2).name}`, '--', 'chroot', '/host', 'true'];
    await must(first, admin(first), debug);
  });

  test('switches from the profile okd to the profile kubernetes and back without data loss', async () => {
    const profile = async (name: string): Promise<void> => {
      for (const host of cluster.hosts) {
        await setProfile(host, name);
        await host.must('systemctl', ['restart', 'hyperedge'], { timeoutMs: 120_000 });
        await cluster.untilBack(host, cluster.hosts);
        await host.must('hyperedge', ['master-restart', 'api'], { timeoutMs: 120_000 });
        await cluster.untilReady(host, cluster.hosts);
      }
      const wanted = name === 'okd' ? 'yes' : 'no';
      const question = ['auth', 'can-i', 'create', 'projectrequests.project.openshift.io'];
      await eventually(`profile ${name}`, 120_000, async () => {
        await logIn(first);
        return (await oc(first, dev(first), question)).stdout.trim() === wanted ? true : undefined;
      });
    };
    await profile('kubernetes');
    await routed();
    assert.notEqual((await oc(first, dev(first), ['new-project', 'later'])).code, 0);
    await profile('okd');
    await routed();
    await must(first, dev(first), ['new-project', 'later']);
    assert.deepEqual((await must(first, dev(first), ['projects', '-q'])).trim().split('\n').sort(), ['later', 'shop']);
  });
});
