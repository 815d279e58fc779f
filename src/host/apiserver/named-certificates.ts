/**
 * Serving certificates by SNI name (`--tls-sni-cert-key`). Source: k8s.io/component-base/cli/flag and
 * k8s.io/apiserver/pkg/server/dynamiccertificates.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { NamedCertificate } from '../../apiserver/index.ts';

export interface NamedFiles {
  readonly certificate: string;
  readonly key: string;
  /** If empty, the names in the certificate are used. */
  readonly names: readonly string[];
}

const DOMAIN = /^(?:\*|(?:\*\.)?[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*)$/;

/** Parses `CERT,KEY` or `CERT,KEY:NAME,NAME`; undefined for any other form. */
export function parseNamedFiles(text: string): NamedFiles | undefined {
  const [, certificate = '', key = '', colon = '', names = ''] = /^([^,:]+),([^,:]+)(?:(:)(.*))?$/.exec(text) ?? [];
  if (certificate === '') return undefined;
  const domains = names.split(',').map((each) => each.trim().toLowerCase());
  if (colon === '') return { certificate: certificate.trim(), key: key.trim(), names: [] };
  if (!domains.every((each) => DOMAIN.test(each))) return undefined;
  return { certificate: certificate.trim(), key: key.trim(), names: domains };
}

/**
 * Certificates with their SNI names. Names in the flag take precedence over the names in the certificate. Throws an
 * Error that names the invalid file.
 */
export function namedCertificates(
  files: readonly NamedFiles[],
  texts: ReadonlyArray<Pick<NamedCertificate, 'certificate' | 'key'>>,
): NamedCertificate[] {
  const all = files.map(({ certificate: file, key: keyFile, names }, index) => {
    const { certificate = '', key = '' } = texts[index] ?? {};
    const parsed = new X509Certificate(certificate);
    if (!parsed.checkPrivateKey(createPrivateKey(key))) throw new Error(`${keyFile} is not the key of ${file}`);
    return { names: names.length > 0 ? names : namesOf(parsed), certificate, key };
  });
  const isGiven = (_: NamedCertificate, index: number): boolean => (files[index]?.names.length ?? 0) > 0;
  return [...all.filter(isGiven), ...all.filter((each, index) => !isGiven(each, index))];
}

/** IP addresses are omitted, because SNI contains only host names. */
function namesOf({ subject, subjectAltName = '' }: X509Certificate): string[] {
  const commonName = /^CN=(.*)$/m.exec(subject)?.[1]?.toLowerCase() ?? '';
  const alternatives = [...subjectAltName.matchAll(/DNS:([^,\s"]+)/g)].map(([, name = '']) => name.toLowerCase());
  const isAddress = /^[\d.]+$/.test(commonName);
  return [...(!isAddress && DOMAIN.test(commonName) ? [commonName] : []), ...alternatives];
}
