import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { chmod, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import {
  etcdFiles,
  type InstallContext,
  installEtcd,
  installMaster,
  installNode,
  issue,
  lifetimeFrom,
  loadIfPresent,
  masterFiles,
  nodeFiles,
  rotateAuthority,
} from '../../src/pki/index.ts';

const DAY = 24 * 3600 * 1000;
const NOW = Date.UTC(2026, 10, 20);

async function withRoot(body: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'pki-root-'));
  try {
    await body(root);
  } finally {
    await rm(root, { recursive: true });
  }
}

async function install(root: string, nowMs: number, ips = ['10.0.0.7', '127.0.0.1']): Promise<string[]> {
  const issued: string[] = [];
  const context: InstallContext = {
    nowMs,
    onIssued: (path, why) => issued.push(`${path.slice(root.length + 1)}: ${why}`),
  };
  const names = { dns: ['localhost', 'n1'], ips };
  await installEtcd(etcdFiles(root), names, 'n1', context);
  const authority = await installMaster(
    {
      files: masterFiles(root),
      etcd: etcdFiles(root),
      serverNames: names,
      routerNames: ['*.apps.test', 'apps.test'],
      publicUrl: 'https://10.0.0.7:8443',
      localUrl: 'https://127.0.0.1:8443',
    },
    context,
  );
  await installNode(
    {
      files: nodeFiles(root),
      authority,
      trustedPem: authority.certPem,
      nodeName: 'n1',
      names,
      serverUrl: 'https://127.0.0.1:8443',
    },
    context,
  );
  return issued.sort();
}

async function tree(root: string): Promise<Record<string, string>> {
  const content: Record<string, string> = {};
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    if (entry.isFile())
      content[join(entry.parentPath, entry.name)] = await readFile(join(entry.parentPath, entry.name), 'utf8');
  }
  return content;
}

test("creates OKD's certificate files at the first start, with private keys, and changes nothing at the second start", () =>
  withRoot(async (root) => {
    const issued = await install(root, NOW);
    assert.ok(issued.length > 10 && issued.every((line) => line.endsWith(': new')));
    const first = await tree(root);
    for (const name of [
      'ca.crt',
      'ca.key',
      'ca-bundle.crt',
      'kubelet-ca-bundle.crt',
      'master.server.crt',
      'master.server.key',
      'master.etcd-client.crt',
      'master.etcd-ca.crt',
      'master.kubelet-client.key',
      'admin.kubeconfig',
      'openshift-master.kubeconfig',
      'openshift-router.crt',
      'openshift-router.key',
      'serviceaccounts.private.key',
      'serviceaccounts.public.key',
    ]) {
      assert.ok(first[join(root, 'etc/origin/master', name)], name);
    }
    for (const path of Object.keys(first)) {
      const mode = (await stat(path)).mode & 0o777;
      if (/\.(key|pem|kubeconfig)$/.test(path) && !path.endsWith('public.key')) assert.equal(mode, 0o600, path);
    }
    assert.match(await readlink(nodeFiles(root).clientCurrent), /^kubelet-client-\d{4}-.*\.pem$/);
    assert.deepEqual(await install(root, NOW + DAY), []);
    assert.deepEqual(await tree(root), first);
  }));

test('client certificates have the users and groups to which the default cluster roles are bound', () =>
  withRoot(async (root) => {
    await install(root, NOW);
    const files = masterFiles(root);
    const subject = async (path: string): Promise<string> => new X509Certificate(await readFile(path)).subject;
    assert.equal(await subject(files.admin.cert), 'O=system:masters\nCN=system:admin');
    assert.equal(await subject(files.controllers.cert), 'CN=system:kube-controller-manager');
    assert.equal(await subject(files.scheduler.cert), 'CN=system:kube-scheduler');
    assert.equal(await subject(files.kubeletClient.cert), 'CN=system:kube-apiserver');
    assert.equal(await subject(nodeFiles(root).clientCurrent), 'O=system:nodes\nCN=system:node:n1');
    const cluster = new X509Certificate(await readFile(files.ca.cert));
    const etcdClient = new X509Certificate(await readFile(files.etcdClient.cert));
    assert.equal(etcdClient.checkIssued(cluster), false);
    const kubeconfig = parse(await readFile(files.adminKubeconfig, 'utf8'));
    assert.equal(kubeconfig.clusters[0].cluster.server, 'https://10.0.0.7:8443');
    assert.equal(kubeconfig['current-context'], kubeconfig.contexts[0].name);
    const node = parse(await readFile(nodeFiles(root).kubeconfig, 'utf8'));
    assert.equal(node.users[0].user['client-key'], nodeFiles(root).clientCurrent);
  }));

test('reissues a certificate for a new address, before its expiry or if its file is damaged, with the same CA', () =>
  withRoot(async (root) => {
    await install(root, NOW);
    const ca = await readFile(masterFiles(root).ca.cert, 'utf8');
    const moved = await install(root, NOW, ['192.168.1.5', '127.0.0.1']);
    assert.deepEqual(moved, [
      'etc/etcd/peer.crt: lacks 192.168.1.5',
      'etc/etcd/server.crt: lacks 192.168.1.5',
      'etc/origin/master/master.server.crt: lacks 192.168.1.5',
      'etc/origin/node/certificates/kubelet-server-current.pem: lacks 192.168.1.5',
    ]);
    await writeFile(masterFiles(root).admin.cert, 'torn');
    await writeFile(masterFiles(root).scheduler.key, '');
    assert.deepEqual(await install(root, NOW, ['192.168.1.5']), [
      'etc/origin/master/admin.crt: unreadable',
      'etc/origin/master/kube-scheduler.crt: unreadable',
    ]);
    const later = await install(root, NOW + 600 * DAY, ['192.168.1.5']);
    assert.ok(later.length >= 8 && later.every((line) => line.endsWith('about to expire')));
    assert.ok((await install(root, NOW + 2400 * DAY, ['192.168.1.5'])).every((line) => line.endsWith(': expired')));
    assert.equal(await readFile(masterFiles(root).ca.cert, 'utf8'), ca);
  }));

test('renews a CA certificate near its expiry with its existing key', () =>
  withRoot(async (root) => {
    await install(root, NOW);
    const old = new X509Certificate(await readFile(masterFiles(root).ca.cert));
    const issued = await install(root, NOW + 3600 * DAY);
    assert.ok(issued.includes('etc/origin/master/ca.crt: about to expire'));
    const renewed = new X509Certificate(await readFile(masterFiles(root).ca.cert));
    assert.ok(renewed.validToDate > old.validToDate && old.verify(renewed.publicKey));
  }));

test('never overwrites a missing or damaged CA key with a new key', () =>
  withRoot(async (root) => {
    await install(root, NOW);
    const key = await readFile(masterFiles(root).ca.key, 'utf8');
    createPrivateKey(key);
    await rm(masterFiles(root).ca.key);
    await assert.rejects(install(root, NOW), { code: 'bad-authority', message: /ca\.key is missing/ });
    await writeFile(masterFiles(root).ca.key, 'torn', { mode: 0o600 });
    await assert.rejects(install(root, NOW), { code: 'bad-authority', message: /ca\.key holds no readable/ });
    await writeFile(masterFiles(root).ca.key, key);
    assert.deepEqual(await install(root, NOW), []);
    await writeFile(masterFiles(root).serviceAccountsPrivateKey, 'torn');
    await assert.rejects(install(root, NOW), { code: 'bad-key' });
  }));

test('rejects a private key file that other users can read or write', () =>
  withRoot(async (root) => {
    await install(root, NOW);
    const { ca, server, serviceAccountsPrivateKey } = masterFiles(root);
    const files = [
      ca.key,
      server.key,
      serviceAccountsPrivateKey,
      etcdFiles(root).signer.key,
      nodeFiles(root).clientCurrent,
    ];
    for (const path of files) {
      await chmod(path, 0o640);
      await assert.rejects(install(root, NOW), (error: Error & { code?: string }) => {
        assert.equal(error.code, 'bad-config');
        assert.ok(error.message.includes(`run chmod 0600 ${path}`), error.message);
        return true;
      });
      await chmod(path, 0o600);
    }
    assert.deepEqual(await install(root, NOW), []);
  }));

test('creates a separate CA for kubelets and replaces it in a rotation of the cluster CA', () =>
  withRoot(async (root) => {
    await install(root, NOW);
    const files = masterFiles(root);
    const bundle = () => readFile(files.kubeletCaBundle, 'utf8');
    const authorities = async () =>
      ((await bundle()).match(/-----BEGIN[\s\S]+?-----END CERTIFICATE-----/g) ?? []).map(
        (pem) => new X509Certificate(pem),
      );
    const serving = async () => new X509Certificate(await readFile(nodeFiles(root).serverCurrent));
    const [kubelets, cluster, ...more] = await authorities();
    const [first, clusterCa] = [await serving(), new X509Certificate(await readFile(files.ca.cert))];
    assert.ok(kubelets !== undefined && cluster !== undefined && more.length === 0);
    assert.ok(first.checkIssued(kubelets) && first.verify(kubelets.publicKey));
    assert.equal(first.verify(clusterCa.publicKey), false);
    assert.ok(new X509Certificate(await readFile(nodeFiles(root).clientCurrent)).verify(clusterCa.publicKey));
    assert.equal(cluster.fingerprint256, clusterCa.fingerprint256);
    assert.equal((await readFile(files.caBundle, 'utf8')).includes(kubelets.toString().trim()), false);
    const rotate = async (phase: 'new-ca' | 'reissue' | 'finish') => {
      await rotateAuthority(files.ca, { commonName: 'openshift-signer', phase, nowMs: NOW });
      await install(root, NOW);
    };
    await rotate('new-ca');
    assert.equal((await serving()).raw.equals(first.raw), true);
    const trusted = await authorities();
    await rotate('reissue');
    const second = await serving();
    assert.ok(
      trusted.some((each) => second.verify(each.publicKey)),
      'it was trusted before it signed',
    );
    assert.ok((await authorities()).some((each) => first.verify(each.publicKey)));
    await rotate('finish');
    assert.equal(
      (await authorities()).some((each) => first.verify(each.publicKey)),
      false,
    );
    assert.deepEqual(await install(root, NOW), []);
  }));

test('keeps a serving certificate signed by an earlier release until it is due for renewal', () =>
  withRoot(async (root) => {
    await install(root, NOW);
    const authority = await loadIfPresent(masterFiles(root).ca);
    assert.ok(authority !== undefined);
    const { certPem, keyPem } = await issue(authority, {
      subject: { commonName: 'system:node:n1', organizations: ['system:nodes'] },
      usages: ['server'],
      names: { dns: ['localhost', 'n1'], ips: ['10.0.0.7', '127.0.0.1'] },
      validity: lifetimeFrom(NOW, 730),
    });
    await writeFile(nodeFiles(root).serverCurrent, certPem + keyPem);
    assert.deepEqual(await install(root, NOW), []);
    assert.ok((await readFile(masterFiles(root).kubeletCaBundle, 'utf8')).includes(authority.certPem.trim()));
    assert.ok(
      (await install(root, NOW + 600 * DAY)).some((line) => line.includes('kubelet-server-current.pem: about to')),
    );
    const renewed = new X509Certificate(await readFile(nodeFiles(root).serverCurrent));
    assert.match(renewed.issuer, /^CN=kubelet-serving-signer@/);
  }));
