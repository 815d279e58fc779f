/** Certificates and kubeconfigs of this host. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { messageOf } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { dateText } from '../../base/time/timestamps.ts';
import type { CertificateFacts, KubeconfigFacts } from '../../doctor/port.ts';
import { etcdFiles, masterFiles, nodeFiles, type PairFiles, predecessorOf, successorOf } from '../../pki/index.ts';
import { balancerUrl } from '../network/balancer-url.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import type { DoctorContext } from './context.ts';

const REQUEST_MS = 4000;
const REVIEWS = '/apis/authentication.k8s.io/v1/selfsubjectreviews';

/**
 * Existing certificate files of this host. `own`: whether an authority on this host must have issued the certificate.
 */
export function certificateFiles(
  root: string,
): readonly { readonly file: string; readonly key?: string; readonly own: boolean }[] {
  const [master, etcd, node] = [masterFiles(root), etcdFiles(root), nodeFiles(root)];
  const issued: readonly PairFiles[] = [
    ...[master.server, master.kubeletClient, master.etcdClient, master.aggregatorFrontProxy],
    ...[master.admin, master.controllers, master.scheduler, etcd.server, etcd.peer],
  ];
  return [
    ...issued.map(({ cert, key }) => ({ file: cert, key, own: true })),
    { file: node.clientCurrent, key: node.clientCurrent, own: true },
    { file: node.serverCurrent, key: node.serverCurrent, own: false },
    { file: master.router.cert, key: master.router.key, own: false },
    ...authorityFiles(root).map((file) => ({ file, own: false })),
  ].filter(({ file }) => existsSync(file));
}

function authorityFiles(root: string): string[] {
  const [master, etcd, node] = [masterFiles(root), etcdFiles(root), nodeFiles(root)];
  const pairs = [master.ca, master.frontProxyCa, etcd.signer].flatMap((pair) => [
    pair.cert,
    successorOf(pair).cert,
    predecessorOf(pair).cert,
  ]);
  return [...new Set([...pairs, master.caBundle, master.kubeletCaBundle, master.etcdCa, etcd.ca, node.clientCa])];
}

export async function certificateFacts({ root, reachable }: DoctorContext): Promise<CertificateFacts[]> {
  await reachable();
  const texts = await Promise.all(authorityFiles(root).map((file) => readFile(file, 'utf8').catch(() => '')));
  const authorities = texts.flatMap(blocksOf).flatMap((pem) => {
    try {
      return [new X509Certificate(pem)];
    } catch {
      // An authority that cannot be parsed is skipped here, because it is also in the list of certificate files, which
      // reports it.
      return [];
    }
  });
  return Promise.all(certificateFiles(root).map((each) => read(each, authorities)));
}

const blocksOf = (text: string): string[] =>
  text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];

async function read(
  { file, key, own }: { readonly file: string; readonly key?: string; readonly own: boolean },
  authorities: readonly X509Certificate[],
): Promise<CertificateFacts> {
  const nothing = { file, subject: '', notBeforeMs: 0, notAfterMs: Number.MAX_SAFE_INTEGER, chainProblem: undefined };
  try {
    const text = await readFile(file, 'utf8');
    const certificate = new X509Certificate(text);
    const { subject, validFromDate, validToDate } = certificate;
    const mismatch = key !== undefined && !certificate.checkPrivateKey(createPrivateKey(await readFile(key, 'utf8')));
    return {
      file,
      subject,
      notBeforeMs: validFromDate.getTime(),
      notAfterMs: validToDate.getTime(),
      chainProblem: chainProblem(certificate, authorities, own),
      problem: mismatch ? `the private key in ${key} belongs to another certificate` : undefined,
    };
  } catch (error) {
    return { ...nothing, problem: `not readable as a certificate with its key: ${messageOf(error)}` };
  }
}

function chainProblem(
  certificate: X509Certificate,
  authorities: readonly X509Certificate[],
  own: boolean,
): string | undefined {
  const named = authorities.filter((authority) => authority.subject === certificate.issuer);
  if (named.some((authority) => certificate.checkIssued(authority) && certificate.verify(authority.publicKey)))
    return undefined;
  const issuer = certificate.issuer.replaceAll('\n', ', ');
  if (named.length > 0) return `its signature is not of the authority ${issuer}`;
  return own ? `its issuer ${issuer} is not among the trusted authorities` : undefined;
}

export async function kubeconfigFacts({ root, reachable, settings }: DoctorContext): Promise<KubeconfigFacts[]> {
  await reachable();
  const master = masterFiles(root);
  const files = [
    master.adminKubeconfig,
    master.controllersKubeconfig,
    master.schedulerKubeconfig,
    nodeFiles(root).kubeconfig,
  ].filter((file) => existsSync(file));
  const { nodeIp, ports } = await settings();
  const [local, published] = [balancerUrl({ ports }), `https://${urlHost(nodeIp)}:${ports.api}`];
  return Promise.all(files.map((file) => probe(file, file === master.adminKubeconfig ? published : local)));
}

const urlHost = (address: string): string => (address.includes(':') ? `[${address}]` : address);

async function probe(file: string, expected: string): Promise<KubeconfigFacts> {
  let server = '';
  try {
    const text = await readFile(file, 'utf8');
    server = /^\s*(?:- )?server: *(\S+)/m.exec(text)?.[1] ?? '';
    const expired = expiredClient(text);
    if (expired !== undefined) return { file, server, expected, problem: expired };
    const opened = await openClient(file, 'doctor/hyperedge', { clock, random, log: silentLog });
    server = opened.server;
    try {
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
      await opened.client.request('POST', REVIEWS, body, { signal: AbortSignal.timeout(REQUEST_MS) });
    } finally {
      await opened.close();
    }
    return { file, server, expected, problem: undefined };
  } catch (error) {
    return { file, server, expected, problem: messageOf(error) };
  }
}

/**
 * Problem text if the client certificate has expired. It is determined from the file, because the server closes the
 * connection without a reason.
 */
function expiredClient(text: string): string | undefined {
  const document: unknown = parse(text, { maxAliasCount: 0 });
  const data = /client-certificate-data["']?: *["']?([A-Za-z0-9+/=]+)/.exec(
    JSON.stringify(document).replaceAll('"', ''),
  )?.[1];
  if (data === undefined) return undefined;
  const { validToDate } = new X509Certificate(Buffer.from(data, 'base64'));
  return validToDate.getTime() < clock.nowMs()
    ? `the client certificate expired on ${dateText(validToDate.getTime())}`
    : undefined;
}
