/** All certificates of all hosts expire while the power is off. Run by `npm run test:lab`. */
import assert from 'node:assert/strict';
import { createPrivateKey, type KeyObject, sign, X509Certificate } from 'node:crypto';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { childrenOf, der, parseDer, toDer } from '../../src/pki/der.ts';
import { etcdFiles, masterFiles } from '../../src/pki/index.ts';
import { deriveKubeletAuthority } from '../../src/pki/kubelet-authority.ts';
import { eventually } from '../e2e/harness.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const DAY_MS = 24 * 3600 * 1000;
const BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;
const EMBEDDED = /(client-certificate-data: *)(\S+)/g;

type Authorities = readonly { readonly certificate: X509Certificate; readonly key: KeyObject }[];

async function authoritiesOf(root: string): Promise<Authorities> {
  const pairs = [masterFiles(root).ca, masterFiles(root).frontProxyCa, etcdFiles(root).signer];
  const read = await Promise.all(
    pairs.map(async ({ cert, key }) => {
      const certPem = await readFile(cert, 'utf8');
      return { certificate: new X509Certificate(certPem), certPem, key: createPrivateKey(await readFile(key)) };
    }),
  );
  const [cluster] = read;
  assert.ok(cluster !== undefined);
  const kubelets = await deriveKubeletAuthority({ ...cluster, privateKey: cluster.key });
  return [...read, { certificate: kubelets.certificate, key: kubelets.privateKey }];
}

/** The same certificate, valid until a month ago. */
function expired(pem: string, authorities: Authorities): string {
  const certificate = new X509Certificate(pem);
  const authority = authorities.find((each) => certificate.verify(each.certificate.publicKey));
  if (certificate.ca || authority === undefined) return pem;
  const [tbs, algorithm] = childrenOf(certificate.raw);
  assert.ok(tbs !== undefined && algorithm !== undefined);
  const parts = childrenOf(tbs).map((part) => parseDer(part));
  parts[4] = der.sequence([der.time(0), der.time(Date.now() - 30 * DAY_MS)]);
  const body = toDer(der.sequence(parts));
  const hash = authority.key.asymmetricKeyType === 'ed25519' ? null : 'sha256';
  const whole = der.sequence([parseDer(body), parseDer(algorithm), der.bits(sign(hash, body, authority.key))]);
  const text = toDer(whole).toString('base64').replaceAll(/.{64}/g, '$&\n').trimEnd();
  const result = `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----`;
  assert.ok(new X509Certificate(result).verify(authority.certificate.publicKey));
  return result;
}

/** Expires the certificates below a directory. Returns the number of changed files. */
async function expireBelow(directory: string, authorities: Authorities): Promise<number> {
  let changed = 0;
  const inText = (text: string): string => text.replaceAll(BLOCK, (pem) => expired(pem, authorities));
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const text = await readFile(path, 'latin1');
    const now = inText(text).replaceAll(EMBEDDED, (_, lead: string, data: string) => {
      const pem = inText(Buffer.from(data, 'base64').toString('latin1'));
      return `${lead}${Buffer.from(pem, 'latin1').toString('base64')}`;
    });
    if (now === text) continue;
    await writeFile(path, now, { encoding: 'latin1', mode: (await stat(path)).mode });
    changed++;
  }
  return changed;
}

describe('expired certificates on all hosts', { skip: missing ?? false }, () => {
  let cluster: LabCluster;
  let masters: readonly NspawnHost[];

  before(async () => {
    cluster = await LabCluster.formed({ masters: 3, nodes: 1 }, 'expired');
    masters = cluster.hosts.slice(0, 3);
    await cluster.importImage();
    await cluster.deployWeb(cluster.host(0));
  });
  after(() => cluster?.stop());

  test('expired certificates on all hosts are renewed and the cluster starts without intervention', async () => {
    const { line } = cluster;
    const a = cluster.host(0);
    await cluster.writable(a, 'before');
    await Promise.all(cluster.hosts.map((host) => host.powerOff()));
    const authorities = await authoritiesOf(a.root);
    for (const host of cluster.hosts) {
      const changed = (
        await Promise.all(
          ['etc/origin', 'etc/etcd'].map((name) =>
            expireBelow(join(host.root, name), authorities).catch((error: NodeJS.ErrnoException) => {
              if (error.code === 'ENOENT') return 0;
              throw error;
            }),
          ),
        )
      ).reduce((sum, each) => sum + each, 0);
      assert.ok(changed >= (masters.includes(host) ? 10 : 2), `${host.name}: ${changed} files`);
      console.log(`${host.name}: certificates of ${changed} files have expired`);
    }
    await line.step('all hosts booted', () => Promise.all(cluster.hosts.map((host) => host.boot())));
    await line.step('a write is acknowledged', () => cluster.writable(a, 'after', 120_000));
    await a.mustKubectl(['get', 'configmap', 'before', 'after']);
    await line.step('everything is Ready', () => cluster.untilReady(a, cluster.hosts, 180_000));
    await line.step('three voters and one ring', async () => {
      await cluster.untilVoters(a, masters, 180_000);
      await cluster.untilRing(cluster.hosts, 180_000);
    });
    await line.step('the application answers from each host', () =>
      eventually('the application', 180_000, async () =>
        (await cluster.reachWeb(a, cluster.hosts)).length === 3 ? true : undefined,
      ).catch(async (error: unknown) => {
        throw new Error(`${String(error)}\n${(await cluster.host(3).journal()).slice(-6_000)}`);
      }),
    );
    const logs = await a.mustKubectl(['logs', '-l', 'app=web', '--tail=1']);
    assert.equal(typeof logs, 'string');
  });
});
