import { chooseCiphers } from '../../wire/cipher-suites.ts';
import type { EtcdUrl } from '../../wire/go-flag-values.ts';
import type { FlagName } from './flags.ts';
import type { EtcdPeerTlsSettings, EtcdSettings, EtcdTlsLimits, EtcdTlsSettings } from './settings.ts';
import { rejectValue, type Values } from './values.ts';

export const isSecure = ({ scheme }: EtcdUrl): boolean => scheme === 'https' || scheme === 'unixs';

/** Checks the TLS flags of https listeners; adds flags without effect to `warnings`. Throws EtcdUsageProblem. */
export function tlsOf(values: Values, listen: EtcdSettings['listen'], warnings: string[]): EtcdSettings['tls'] {
  const client = clientTlsOf(values);
  const peer = peerTlsOf(values);
  const clientSide = [...listen.client, ...listen.clientHttp, ...listen.metrics];
  checkTls(clientSide, client, '--cert-file and --key-file');
  checkTls(listen.peer, peer, '--peer-cert-file and --peer-key-file');
  for (const name of ['client-crl-file', 'client-cert-allowed-hostname'] as const) {
    if (client.requireCertificate || !values.has(name)) continue;
    warnings.push(
      `${values.label(name)} is not used: clients do not need a certificate; set --trusted-ca-file to require one`,
    );
  }
  if (client.automatic && client.certFile !== undefined) warnings.push('--auto-tls is not used: --cert-file is given');
  if (peer.automatic && peer.certFile !== undefined)
    warnings.push('--peer-auto-tls is not used: --peer-cert-file is given');
  for (const url of client.certFile === undefined ? [] : clientSide) {
    if (!isSecure(url) && !listen.metrics.includes(url))
      warnings.push(`${url.text} does not use TLS; the certificate is not used for this URL`);
  }
  return { client, peer, limits: tlsLimitsOf(values, warnings) };
}

function pairOf(values: Values, cert: FlagName, key: FlagName): readonly [string | undefined, string | undefined] {
  const files = [values.file(cert), values.file(key)] as const;
  if ((files[0] === undefined) !== (files[1] === undefined)) {
    const [there, missing] = files[0] === undefined ? [key, cert] : [cert, key];
    rejectValue(`${values.label(there)} is given without --${missing}; give both or neither`);
  }
  return files;
}

function clientTlsOf(values: Values): EtcdTlsSettings {
  const [certFile, keyFile] = pairOf(values, 'cert-file', 'key-file');
  const trustedCaFile = values.file('trusted-ca-file');
  return {
    certFile,
    keyFile,
    trustedCaFile,
    requireCertificate: values.boolean('client-cert-auth') || trustedCaFile !== undefined,
    crlFile: values.file('client-crl-file'),
    allowedHostnames: values.list('client-cert-allowed-hostname'),
    allowedCommonNames: [],
    automatic: values.boolean('auto-tls'),
  };
}

function peerTlsOf(values: Values): EtcdPeerTlsSettings {
  const [certFile, keyFile] = pairOf(values, 'peer-cert-file', 'peer-key-file');
  const [clientCertFile, clientKeyFile] = pairOf(values, 'peer-client-cert-file', 'peer-client-key-file');
  const trustedCaFile = values.file('peer-trusted-ca-file');
  const allowedCommonNames = values.list('peer-cert-allowed-cn');
  const allowedHostnames = values.list('peer-cert-allowed-hostname');
  if (allowedCommonNames.length > 0 && allowedHostnames.length > 0) {
    rejectValue('--peer-cert-allowed-cn and --peer-cert-allowed-hostname exclude each other; give one of them');
  }
  return {
    certFile,
    keyFile,
    clientCertFile: clientCertFile ?? certFile,
    clientKeyFile: clientKeyFile ?? keyFile,
    trustedCaFile,
    requireCertificate: values.boolean('peer-client-cert-auth') || trustedCaFile !== undefined,
    crlFile: values.file('peer-crl-file'),
    allowedHostnames,
    allowedCommonNames,
    automatic: values.boolean('peer-auto-tls'),
  };
}

function checkTls(urls: readonly EtcdUrl[], tls: EtcdTlsSettings, flags: string): void {
  const secure = urls.find(isSecure);
  if (secure === undefined || tls.certFile !== undefined || tls.automatic) return;
  rejectValue(`${secure.text} needs a certificate: give ${flags}`);
}

function tlsLimitsOf(values: Values, warnings: string[]): EtcdTlsLimits {
  const { ciphers, weak, unknown } = chooseCiphers(values.list('cipher-suites'));
  if (unknown !== undefined) {
    rejectValue(
      `${values.label('cipher-suites')}: "${unknown}" is not a cipher suite of Go; give names such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`,
    );
  }
  for (const name of weak) warnings.push(`${values.label('cipher-suites')}: ${name} is insecure and omitted`);
  const minVersion = values.text('tls-min-version') === 'TLS1.3' ? 'TLSv1.3' : 'TLSv1.2';
  const maxVersion = values.text('tls-max-version') === 'TLS1.2' ? 'TLSv1.2' : 'TLSv1.3';
  if (minVersion > maxVersion) rejectValue('--tls-min-version is above --tls-max-version; swap them');
  if (ciphers !== undefined && minVersion === 'TLSv1.3') {
    rejectValue('--cipher-suites are those of TLS 1.2, which --tls-min-version=TLS1.3 excludes; omit one of them');
  }
  return { minVersion, maxVersion, ciphers, selfSignedYears: values.number('self-signed-cert-validity') };
}
