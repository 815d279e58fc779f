/**
 * Makes what is missing of a host's certificates, and makes again what has expired, is about to, was issued by another
 * authority or lacks a name or address that the host has now. Running it twice changes nothing the second time.
 */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { CodedError, messageOf } from '../../base/errors.ts';
import {
  type Authority,
  createAuthority,
  generateKey,
  issue,
  type KeyPair,
  keyToPem,
  type LeafRequest,
  lifetimeFrom,
  loadAuthority,
  publicKeyToPem,
} from './certificate.ts';
import { makeDirectory, pointLink, readIfPresent, readSecretIfPresent, writeIfDifferent, writeWhole } from './files.ts';
import { createKubeconfig } from './kubeconfig.ts';
import type { EtcdFiles, MasterFiles, NodeFiles, PairFiles } from './layout.ts';
import { type AlternativeNames, bytesToIp, ipToBytes, type Subject } from './names.ts';

const DAY_MS = 24 * 3600 * 1000;
/**
 * OKD's own lives: five years for authorities, two for the rest; an edge host may sit in a box for long, so authorities
 * get ten.
 */
const AUTHORITY_DAYS = 3650;
const LEAF_DAYS = 730;

export interface InstallContext {
  readonly nowMs: number;
  /** Called with each file that was made or made again, and why. */
  readonly onIssued?: (path: string, why: string) => void;
}

export interface MasterInstall {
  readonly files: MasterFiles;
  readonly etcd: EtcdFiles;
  /** Names and addresses of the API server. */
  readonly serverNames: AlternativeNames;
  /** What admin.kubeconfig points to. */
  readonly publicUrl: string;
  /** What the host's own components use. */
  readonly localUrl: string;
}

/**
 * The master's part of `/etc/origin/master`. The etcd authority must be there already (`installEtcd`) unless etcd is
 * external.
 */
export async function installMaster(install: MasterInstall, context: InstallContext): Promise<Authority> {
  const { files } = install;
  await makeDirectory(files.directory, 0o700);
  const [authority, frontProxyCa] = await Promise.all([
    ensureAuthority(files.ca, 'openshift-signer', context),
    ensureAuthority(files.frontProxyCa, 'openshift-aggregator-front-proxy', context),
    ensureServiceAccountKeys(files, context),
  ]);
  await writeIfDifferent(files.caBundle, authority.certPem, { mode: 0o644 });
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
    installEtcdClient(install, context),
  ]);
  const kubeconfig = async (path: string, user: string, server: string, pair: KeyPair): Promise<void> => {
    await writeIfDifferent(path, createKubeconfig({ server, caPem: authority.certPem, user, client: pair }));
  };
  await Promise.all([
    kubeconfig(files.adminKubeconfig, 'system:admin', install.publicUrl, admin),
    kubeconfig(files.controllersKubeconfig, 'system:kube-controller-manager', install.localUrl, controllers),
    kubeconfig(files.schedulerKubeconfig, 'system:kube-scheduler', install.localUrl, scheduler),
  ]);
  return authority;
}

/** The API server's client certificate for the store, and the authority it trusts the store by. */
async function installEtcdClient(install: MasterInstall, context: InstallContext): Promise<void> {
  const signer = await loadIfPresent(install.etcd.signer);
  if (signer === undefined) return;
  await writeIfDifferent(install.files.etcdCa, signer.certPem, { mode: 0o644 });
  await ensureLeaf(
    install.files.etcdClient,
    signer,
    { subject: { commonName: 'system:etcd-client' }, usages: ['client'] },
    context,
  );
}

/** `/etc/etcd`: an authority of its own, so that a certificate of the cluster opens no store. */
export async function installEtcd(
  files: EtcdFiles,
  names: AlternativeNames,
  hostname: string,
  context: InstallContext,
): Promise<void> {
  await makeDirectory(join(files.directory, 'ca'), 0o700);
  const authority = await ensureAuthority(files.signer, 'etcd-signer', context);
  await Promise.all([
    writeIfDifferent(files.ca, authority.certPem, { mode: 0o644 }),
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
  readonly nodeName: string;
  readonly names: AlternativeNames;
  readonly serverUrl: string;
}

/** `/etc/origin/node` of a host that holds the authority itself: no request needs to be approved by anybody. */
export async function installNode(install: NodeInstall, context: InstallContext): Promise<void> {
  const { files, authority, nodeName } = install;
  await makeDirectory(files.certificates, 0o700);
  const subject = { commonName: `system:node:${nodeName}`, organizations: ['system:nodes'] };
  await Promise.all([
    writeIfDifferent(files.clientCa, authority.certPem, { mode: 0o644 }),
    ensureCurrent(files, 'client', authority, { subject, usages: ['client'] }, context),
    ensureCurrent(files, 'server', authority, { subject, usages: ['server'], names: install.names }, context),
    writeIfDifferent(
      files.kubeconfig,
      createKubeconfig({
        server: install.serverUrl,
        caPem: authority.certPem,
        user: `system:node:${nodeName}`,
        client: { certFile: files.clientCurrent, keyFile: files.clientCurrent },
      }),
    ),
  ]);
}

/** An authority from its files; undefined when there is none. */
export async function loadIfPresent(files: PairFiles): Promise<Authority | undefined> {
  const [certPem, keyPem] = await Promise.all([readIfPresent(files.cert), readSecretIfPresent(files.key)]);
  if (certPem === undefined || keyPem === undefined) return undefined;
  try {
    return loadAuthority(certPem, keyPem);
  } catch (error) {
    throw new CodedError('bad-authority', `${files.cert}: ${messageOf(error)}`, { cause: error });
  }
}

async function ensureAuthority(files: PairFiles, commonName: string, context: InstallContext): Promise<Authority> {
  const [certPem, keyPem] = await Promise.all([readIfPresent(files.cert), readSecretIfPresent(files.key)]);
  if (keyPem === undefined && certPem !== undefined) {
    throw new CodedError(
      'bad-authority',
      `${files.key} is missing; restore it, or remove ${files.cert} to create a new authority`,
    );
  }
  if (keyPem === undefined) {
    const made = await createAuthority(commonName, lifetimeFrom(context.nowMs, AUTHORITY_DAYS));
    // The key first: a certificate without its key could never be renewed.
    await writeWhole(files.key, made.keyPem, { durable: true });
    await writeWhole(files.cert, made.certPem, { mode: 0o644, durable: true });
    context.onIssued?.(files.cert, 'new');
    return made;
  }
  const loaded = certPem === undefined ? undefined : tryLoad(certPem, keyPem);
  if (loaded !== undefined && !isEnding(loaded.certificate, context.nowMs)) return loaded;
  let key: ReturnType<typeof createPrivateKey>;
  try {
    key = createPrivateKey(keyPem);
  } catch (error) {
    throw new CodedError('bad-authority', `${files.key} holds no readable private key; restore it`, { cause: error });
  }
  const renewed = await createAuthority(commonName, lifetimeFrom(context.nowMs, AUTHORITY_DAYS), key);
  await writeWhole(files.cert, renewed.certPem, { mode: 0o644, durable: true });
  context.onIssued?.(files.cert, loaded === undefined ? 'unusable' : 'about to expire');
  return renewed;
}

function tryLoad(certPem: string, keyPem: string): Authority | undefined {
  try {
    return loadAuthority(certPem, keyPem);
  } catch {
    return undefined;
  }
}

type Wanted = Omit<LeafRequest, 'validity'>;

async function ensureLeaf(
  files: PairFiles,
  authority: Authority,
  wanted: Wanted,
  context: InstallContext,
): Promise<KeyPair> {
  const [certPem, keyPem] = await Promise.all([readIfPresent(files.cert), readSecretIfPresent(files.key)]);
  const why = whyReissue(certPem, keyPem, authority, wanted, context.nowMs);
  if (why === undefined && certPem !== undefined && keyPem !== undefined) return { certPem, keyPem };
  const made = await issue(authority, { ...wanted, validity: lifetimeFrom(context.nowMs, LEAF_DAYS) });
  await writeWhole(files.key, made.keyPem);
  await writeWhole(files.cert, made.certPem, { mode: 0o644 });
  context.onIssued?.(files.cert, why ?? 'new');
  return made;
}

/** The kubelet's way: certificate and key in one dated file, and a link to the current one. */
async function ensureCurrent(
  files: NodeFiles,
  role: 'client' | 'server',
  authority: Authority,
  wanted: Wanted,
  context: InstallContext,
): Promise<void> {
  const link = role === 'client' ? files.clientCurrent : files.serverCurrent;
  const present = await readSecretIfPresent(link);
  const why = whyReissue(present, present, authority, wanted, context.nowMs);
  if (why === undefined) return;
  const made = await issue(authority, { ...wanted, validity: lifetimeFrom(context.nowMs, LEAF_DAYS) });
  const name = datedName(role, context.nowMs);
  await writeWhole(join(files.certificates, name), made.certPem + made.keyPem);
  await pointLink(link, name);
  context.onIssued?.(link, why);
}

/** As OKD's and upstream's kubelets name them. */
export function datedName(role: 'client' | 'server', nowMs: number): string {
  return `kubelet-${role}-${new Date(nowMs).toISOString().replaceAll(/[:T]/g, '-').slice(0, 19)}.pem`;
}

/** Undefined when the pair on disk will do. */
function whyReissue(
  certPem: string | undefined,
  keyPem: string | undefined,
  authority: Authority,
  wanted: Wanted,
  nowMs: number,
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
    return 'issued by another authority';
  }
  if (!sameSubject(certificate, wanted.subject)) return 'subject changed';
  if (nowMs > certificate.validToDate.getTime()) return 'expired';
  if (isEnding(certificate, nowMs)) return 'about to expire';
  const missing = missingNames(certificate, wanted.names ?? { dns: [], ips: [] });
  return missing.length === 0 ? undefined : `lacks ${missing.join(', ')}`;
}

/** Less than a third of its life is left; lives begin before installation, so at most a third of two years. */
function isEnding(certificate: X509Certificate, nowMs: number): boolean {
  const endsMs = certificate.validToDate.getTime();
  const lifeMs = endsMs - certificate.validFromDate.getTime();
  return endsMs - nowMs < Math.min(lifeMs, LEAF_DAYS * DAY_MS) / 3;
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

/** Addresses in one spelling each. */
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

async function ensureServiceAccountKeys(files: MasterFiles, context: InstallContext): Promise<void> {
  let keyPem = await readSecretIfPresent(files.serviceAccountsPrivateKey);
  if (keyPem === undefined) {
    keyPem = keyToPem(await generateKey());
    await writeWhole(files.serviceAccountsPrivateKey, keyPem, { durable: true });
    context.onIssued?.(files.serviceAccountsPrivateKey, 'new');
  }
  let publicPem: string;
  try {
    publicPem = publicKeyToPem(createPrivateKey(keyPem));
  } catch (error) {
    throw new CodedError('bad-key', `${files.serviceAccountsPrivateKey} holds no readable private key; restore it`, {
      cause: error,
    });
  }
  // OKD lets several public keys stand in this file while a signing key is exchanged: ours is added, none is taken
  // away.
  const present = (await readIfPresent(files.serviceAccountsPublicKey)) ?? '';
  if (!present.includes(publicPem.trim())) {
    await writeWhole(files.serviceAccountsPublicKey, publicPem + present, { mode: 0o644 });
  }
}
