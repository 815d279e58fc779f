/**
 * Three API servers on one store behind a node's balancer. A client counts failed requests while one server is killed
 * and one stops.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { resources } from '../../../src/api/resources.ts';
import { messageOf } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import { type ApiClient, createApiClient } from '../../../src/client/index.ts';
import { createNodeBalancer, type NodeBalancer } from '../../../src/network/balancer/index.ts';
import { createTcpBalancing } from '../../../src/network/balancer/io/balancer.ts';
import { createReadinessProbe } from '../../../src/network/balancer/io/ready-probe.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/index.ts';
import { eventually, seededRandom, systemClock } from '../../client/clocks.ts';
import { MAIN } from '../../support/main-program.ts';
import { freePort } from '../../support/ports.ts';

const WRITERS = 8;

async function material(directory: string) {
  const validity = lifetimeFrom(Date.now(), 1);
  const ca = await createAuthority('masters', validity);
  const names = { dns: ['localhost'], ips: ['127.0.0.1'] };
  const server = await issue(ca, { subject: { commonName: 'api' }, usages: ['server'], names, validity });
  const admin = await issue(ca, {
    subject: { commonName: 'admin', organizations: ['system:masters'] },
    usages: ['client'],
    validity,
  });
  const signer = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const files = {
    'api.crt': server.certPem,
    'api.key': server.keyPem,
    'ca.crt': ca.certPem,
    'signer.key': signer.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
    'signer.crt': signer.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text, { mode: 0o600 });
  return { ca: ca.certPem, cert: admin.certPem, key: admin.keyPem };
}

describe('three API servers behind a node balancer', { timeout: 180_000 }, () => {
  const children: ChildProcess[] = [];
  const masters: { readonly target: string; readonly child: ChildProcess }[] = [];
  let directory = '';
  let balancer: NodeBalancer;
  let client: ApiClient;

  const start = (args: readonly string[]): ChildProcess => {
    const child = spawn(process.execPath, [MAIN, ...args], { cwd: directory, stdio: 'ignore' });
    children.push(child);
    return child;
  };

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'he-masters-'));
    const pki = await material(directory);
    const at = (name: string): string => join(directory, name);
    const etcd = `http://127.0.0.1:${await freePort()}`;
    const peer = `http://127.0.0.1:${await freePort()}`;
    start([
      ...['etcd', '--unsafe-no-fsync', `--listen-client-urls=${etcd}`, `--advertise-client-urls=${etcd}`],
      ...[`--listen-peer-urls=${peer}`, `--initial-advertise-peer-urls=${peer}`],
      ...[`--initial-cluster=default=${peer}`, `--data-dir=${at('etcd')}`],
    ]);
    for (const host of [1, 2, 3]) {
      const port = await freePort();
      const child = start([
        ...['api', '--bind-address=127.0.0.1', `--secure-port=${port}`, `--advertise-address=192.0.2.${host}`],
        ...[`--tls-cert-file=${at('api.crt')}`, `--tls-private-key-file=${at('api.key')}`],
        ...[`--client-ca-file=${at('ca.crt')}`, `--etcd-servers=${etcd}`, '--authorization-mode=RBAC'],
        ...[`--service-account-key-file=${at('signer.crt')}`, `--service-account-signing-key-file=${at('signer.key')}`],
        ...['--service-account-issuer=https://kubernetes.default.svc', '--shutdown-delay-duration=1500ms'],
      ]);
      masters.push({ target: `127.0.0.1:${port}`, child });
    }
    balancer = createNodeBalancer({
      tcp: createTcpBalancing(),
      probe: createReadinessProbe({ ca: async () => pki.ca, identity: '127.0.0.1' }),
      saved: { load: async () => [], save: async () => {} },
      clock: systemClock,
      random: seededRandom(1),
      log: silentLog,
      config: { address: '127.0.0.1', port: 0, local: undefined, bootstrap: masters.map(({ target }) => target) },
    });
    const { port } = await balancer.start();
    client = createApiClient({
      server: `https://127.0.0.1:${port}`,
      ...pki,
      userAgent: 'test',
      log: silentLog,
      clock: systemClock,
      timeoutMs: 5_000,
    });
    await allReady(3, 60_000);
  });

  after(async () => {
    await client?.close();
    await balancer?.stop();
    const ended = children.map(
      (child) =>
        new Promise<void>((resolve) => {
          if (child.exitCode !== null || child.signalCode !== null) resolve();
          else child.once('close', () => resolve());
        }),
    );
    for (const child of children) child.kill('SIGKILL');
    await Promise.all(ended);
    await rm(directory, { recursive: true, force: true });
  });

  const allReady = (count: number, timeoutMs = 10_000) =>
    eventually(
      `${count} are ready`,
      () => balancer.backends().filter(({ health }) => health === 'ready').length === count,
      timeoutMs,
    );

  /** Concurrent writes by several clients until one second after `during` has ended. */
  async function underLoad(prefix: string, during: () => Promise<void>) {
    const maps = client.resource(resources.configMaps);
    const written: string[] = [];
    const failures: { readonly atMs: number; readonly error: string }[] = [];
    let stop = false;
    const writer = async (id: number): Promise<void> => {
      for (let each = 0; !stop; each++) {
        const name = `${prefix}-${id}-${each}`;
        try {
          await maps.create({ metadata: { namespace: 'default', name }, data: { at: String(each) } });
          written.push(name);
        } catch (error) {
          failures.push({ atMs: performance.now(), error: messageOf(error) });
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    };
    const writers = Array.from({ length: WRITERS }, (_, id) => writer(id));
    await new Promise((resolve) => setTimeout(resolve, 500));
    const beginMs = performance.now();
    await during();
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    stop = true;
    await Promise.all(writers);
    const present = new Set((await maps.list({ namespace: 'default' })).items.map(({ metadata }) => metadata?.name));
    const lost = written.filter((name) => !present.has(name));
    const lastMs = Math.max(0, ...failures.map(({ atMs }) => atMs - beginMs));
    console.log(
      `${prefix}: ${written.length} writes, ${failures.length} failed, the last one ${lastMs.toFixed(0)} ms after, ${lost.length} lost`,
    );
    return { written, failures, lost, lastMs };
  }

  /** Server with the most connections. */
  const busiest = () => {
    const [most] = balancer.backends().toSorted((left, right) => right.connections - left.connections);
    const found = masters.find(({ target }) => target === most?.target);
    assert.ok(found);
    return found;
  };

  it('killing one of three masters loses no write and causes failures for at most a second', async () => {
    const { written, lost, lastMs } = await underLoad('killed', async () => {
      const { target, child } = busiest();
      child.kill('SIGKILL');
      await eventually(
        'it is dead',
        () => balancer.backends().find((each) => each.target === target)?.health === 'dead',
      );
    });
    assert.ok(written.length > 100);
    assert.deepEqual(lost, []);
    assert.ok(lastMs <= 1_000, `errors for ${lastMs} ms`);
  });

  it('a regular stop of one of three masters fails no request', async () => {
    await allReady(2);
    const { failures, lost } = await underLoad('stopped', async () => {
      const { child } = busiest();
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    });
    assert.deepEqual(lost, []);
    assert.deepEqual(failures, []);
  });
});
