/**
 * Creates missing certificates of a host. Also replaces certificates that have expired or are about to expire, that
 * were issued by another authority, or that lack a current name or address of the host. A repeated run changes no file.
 */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { renewalDueMs, whyRenew } from '../base/time/certificate-life.ts';
import { ensureAuthority, type InstallContext, LEAF_LIFE_MS, loadIfPresent, trustedBundle } from './authorities.ts';
import { type Authority, datesOf, issue, type KeyPair, type LeafRequest, lifetimeFrom } from './certificate.ts';
import {
  makeDirectory,
  pointLink,
  readIfPresent,
  readSecretIfPresent,
  writeIfDifferent,
  writePair,
  writeWhole,
} from './files.ts';
import { createKubeconfig } from './kubeconfig.ts';
import { deriveKubeletAuthority, kubeletBundle } from './kubelet-authority.ts';
import type { EtcdFiles, MasterFiles, NodeFiles, PairFiles } from './layout.ts';
import { ensureServiceAccountKeys } from './service-account-keys.ts';
import { type AlternativeNames, bytesToIp, ipToBytes, type Subject } from './subject-names.ts';

const DAY_MS = 24 * 3600 * 1000;

export interface MasterInstall {
  readonly files: MasterFiles;
  readonly etcd: EtcdFiles;
  /** Names and addresses in the API server's certificate. */
  readonly serverNames: AlternativeNames;
  /** DNS names in the default certificate of routes. */
  readonly routerNames: readonly string[];
  /** Server URL in admin.kubeconfig. */
  readonly publicUrl: string;
  /** Server URL for the host's own components. */
  readonly localUrl: string;
}

/**
 * Creates the files of `/etc/origin/master`. Unless etcd is external, its authority must already exist (`installEtcd`).
 */
export async function installMaster(install: MasterInstall, context: InstallContext): Promise<Authority> {
  const { files } = install;
  await makeDirectory(files.directory, 0o700);
  const [authority, frontProxyCa] = await Promise.all([
    ensureAuthority(files.ca, 'openshift-signer', context),
    ensureAuthority(files.frontProxyCa, 'openshift-aggregator-front-proxy', context),
    ensureServiceAccountKeys(files, context),
  ]);
  const caPem = await trustedBundle(files.ca);
  await Promise.all([
    writeIfDifferent(files.caBundle, caPem, { mode: 0o644 }),
    writeKubeletBundle(files),
    writeIfDifferent(files.frontProxyCaBundle, await trustedBundle(files.frontProxyCa), { mode: 0o644 }),
  ]);
  const client = (pair: PairFiles, commonName: string, organizations: readonly string[] = []): Promise<KeyPair> =>
    ensureLeaf(pair, authority, { subject: { commonName, organizations }, usages: ['client'] }, context);
  const [admin, controllers, scheduler] = await Promise.all([
    client(files.admin, 'system:admin', ['system:masters']),
    client(files.controllers, 'system:kube-controller-manager'),
    client(files.scheduler, 'system:kube-scheduler'),
    client(files.kubeletClient, 'system:kube-apiserver'),
    ensureLeaf(
      files.aggregatorFrontProxy,
      frontProxyCa,
      { subject: { commonName: 'aggregator-front-proxy' }, usages: ['client'] },
      context,
    ),
    ensureLeaf(
      files.server,
      authority,
      { subject: { commonName: 'kube-apiserver' }, usages: ['server'], names: install.serverNames },
      context,
    ),
    ensureLeaf(
      files.router,
      authority,
      {
        subject: { commonName: install.routerNames[0] ?? 'openshift-router' },
        usages: ['server'],
        names: { dns: install.routerNames, ips: [] },
      },
      context,
    ),
    installEtcdClient(install, context),
  ]);
  const kubeconfig = async (path: string, user: string, server: string, pair: KeyPair): Promise<void> => {
    await writeIfDifferent(path, createKubeconfig({ server, caPem, user, client: pair }));
  };
  await Promise.all([
    kubeconfig(files.adminKubeconfig, 'system:admin', install.publicUrl, admin),
    kubeconfig(files.controllersKubeconfig, 'system:kube-controller-manager', install.localUrl, controllers),
    kubeconfig(files.schedulerKubeconfig, 'system:kube-scheduler', install.localUrl, scheduler),
  ]);
  return authority;
}

async function writeKubeletBundle({ ca, kubeletCaBundle }: MasterFiles): Promise<void> {
  const bundle = await kubeletBundle(ca, await readIfPresent(kubeletCaBundle));
  await writeIfDifferent(kubeletCaBundle, bundle, { mode: 0o644 });
}

/**
 * Creates the API server's client certificate for the store, and the bundle of authorities by which the API server
 * verifies the store.
 */
async function installEtcdClient(install: MasterInstall, context: InstallContext): Promise<void> {
  const signer = await loadIfPresent(install.etcd.signer);
  if (signer === undefined) return;
  await writeIfDifferent(install.files.etcdCa, await trustedBundle(install.etcd.signer), { mode: 0o644 });
  await ensureLeaf(
    install.files.etcdClient,
    signer,
    { subject: { commonName: 'system:etcd-client' }, usages: ['client'] },
    context,
  );
}

/**
 * Creates the files of `/etc/etcd`. The store has a separate authority, so that certificates of the cluster do not
 * permit access to the store.
 */
export async function installEtcd(
  files: EtcdFiles,
  names: AlternativeNames,
  hostname: string,
  context: InstallContext,
): Promise<void> {
  await makeDirectory(join(files.directory, 'ca'), 0o700);
  const authority = await ensureAuthority(files.signer, 'etcd-signer', context);
  await Promise.all([
    writeIfDifferent(files.ca, await trustedBundle(files.signer), { mode: 0o644 }),
    ensureLeaf(files.server, authority, { subject: { commonName: hostname }, usages: ['server'], names }, context),
    ensureLeaf(
      files.peer,
      authority,
      { subject: { commonName: hostname }, usages: ['server', 'client'], names },
      context,
    ),
  ]);
}

export interface NodeInstall {
  readonly files: NodeFiles;
  readonly authority: Authority;
  /** PEM bundle of all trusted authorities. */
  readonly trustedPem: string;
  readonly nodeName: string;
  readonly names: AlternativeNames;
  readonly serverUrl: string;
}

/**
 * Creates the files of `/etc/origin/node` on a host that has the authority. The host issues the certificates itself,
 * without signing requests.
 */
export async function installNode(install: NodeInstall, context: InstallContext): Promise<void> {
  const { files, authority, trustedPem, nodeName } = install;
  await makeDirectory(files.certificates, 0o700);
  const subject = { commonName: `system:node:${nodeName}`, organizations: ['system:nodes'] };
  await Promise.all([
    writeIfDifferent(files.clientCa, trustedPem, { mode: 0o644 }),
    ensureCurrent(files, 'client', [authority], { subject, usages: ['client'] }, context),
    // A certificate that the cluster's authority has issued for an earlier release is kept until it must be renewed.
    ensureCurrent(
      files,
      'server',
      [await deriveKubeletAuthority(authority), authority],
      { subject, usages: ['server'], names: install.names },
      context,
    ),
    writeIfDifferent(
      files.kubeconfig,
      createKubeconfig({
        server: install.serverUrl,
        caPem: trustedPem,
        user: `system:node:${nodeName}`,
        client: { certFile: files.clientCurrent, keyFile: files.clientCurrent },
      }),
    ),
  ]);
}

const ANOTHER_AUTHORITY = 'issued by another authority';

type Wanted = Omit<LeafRequest, 'validity'>;

async function ensureLeaf(
  files: PairFiles,
  authority: Authority,
  wanted: Wanted,
  context: InstallContext,
): Promise<KeyPair> {
  const [certPem, keyPem] = await Promise.all([readIfPresent(files.cert), readSecretIfPresent(files.key)]);
  const why = whyReissue(certPem, keyPem, authority, wanted, context);
  if (why === undefined && certPem !== undefined && keyPem !== undefined) return { certPem, keyPem };
  const made = await issueNow(authority, wanted, context);
  await writePair(files, made);
  context.onIssued?.(files.cert, why ?? 'new');
  return made;
}

/**
 * Ensures a valid certificate in the kubelet's layout: a file with a date in its name contains certificate and key, and
 * a link points to the current file. The first authority issues new certificates. Certificates of the other authorities
 * are accepted.
 */
async function ensureCurrent(
  files: NodeFiles,
  role: 'client' | 'server',
  authorities: readonly [Authority, ...Authority[]],
  wanted: Wanted,
  context: InstallContext,
): Promise<void> {
  const link = role === 'client' ? files.clientCurrent : files.serverCurrent;
  const present = await readSecretIfPresent(link);
  const reasons = authorities.map((each) => whyReissue(present, present, each, wanted, context));
  if (reasons.includes(undefined)) return;
  const why = reasons.find((reason) => reason !== ANOTHER_AUTHORITY) ?? ANOTHER_AUTHORITY;
  const made = await issueNow(authorities[0], wanted, context);
  const name = datedName(role, context.nowMs);
  await writeWhole(join(files.certificates, name), made.certPem + made.keyPem);
  await pointLink(link, name);
  context.onIssued?.(link, why);
}

/** File name of a certificate, in the format of OKD's and upstream's kubelets. */
export function datedName(role: 'client' | 'server', nowMs: number): string {
  return `kubelet-${role}-${new Date(nowMs).toISOString().replaceAll(/[:T]/g, '-').slice(0, 19)}.pem`;
}

/** Reason for issuing a new certificate; undefined if the pair on disk is valid. */
function whyReissue(
  certPem: string | undefined,
  keyPem: string | undefined,
  authority: Authority,
  wanted: Wanted,
  context: InstallContext,
): string | undefined {
  if (certPem === undefined || keyPem === undefined) return 'new';
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(certPem);
    if (!certificate.checkPrivateKey(createPrivateKey(keyPem))) return 'key and certificate do not belong together';
  } catch {
    return 'unreadable';
  }
  if (!certificate.checkIssued(authority.certificate) || !certificate.verify(createPublicKey(authority.privateKey))) {
    return ANOTHER_AUTHORITY;
  }
  if (!sameSubject(certificate, wanted.subject)) return 'subject changed';
  const { nowMs, lifeMs = LEAF_LIFE_MS } = context;
  const why = whyRenew(datesOf(certificate), lifeMs, nowMs);
  if (why !== undefined) return why;
  const missing = missingNames(certificate, wanted.names ?? { dns: [], ips: [] });
  if (missing.length > 0) return `lacks ${missing.join(', ')}`;
  context.onDue?.(renewalDueMs(datesOf(certificate), lifeMs));
  return undefined;
}

async function issueNow(authority: Authority, wanted: Wanted, context: InstallContext): Promise<KeyPair> {
  const { nowMs, lifeMs = LEAF_LIFE_MS } = context;
  const made = await issue(authority, { ...wanted, validity: lifetimeFrom(nowMs, lifeMs / DAY_MS) });
  context.onDue?.(renewalDueMs(datesOf(new X509Certificate(made.certPem)), lifeMs));
  return made;
}

function sameSubject(certificate: X509Certificate, subject: Subject): boolean {
  const lines = [...(subject.organizations ?? []).map((name) => `O=${name}`), `CN=${subject.commonName}`];
  return certificate.subject === lines.join('\n');
}

function missingNames(certificate: X509Certificate, wanted: AlternativeNames): string[] {
  const { dns, ips } = namesOf(certificate);
  return [
    ...wanted.dns.filter((name) => !dns.includes(name)),
    ...wanted.ips.filter((ip) => !ips.includes(canonicalIp(ip))),
  ];
}

/** DNS names and addresses in a certificate. The addresses are in canonical form. */
export function namesOf(certificate: X509Certificate): AlternativeNames {
  const dns = new Set<string>();
  const ips = new Set<string>();
  for (const entry of (certificate.subjectAltName ?? '').split(', ')) {
    if (entry.startsWith('DNS:')) dns.add(entry.slice(4));
    else if (entry.startsWith('IP Address:')) ips.add(canonicalIp(entry.slice(11)));
  }
  return { dns: [...dns], ips: [...ips] };
}

export function canonicalIp(text: string): string {
  return bytesToIp(ipToBytes(text));
}
