/** Certificates and keys in the files of the flags, reloaded without a restart as in upstream. */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ApiValues } from '../../apiserver/config/index.ts';
import type { ApiServerConfig, CertificateSettings, FollowedCertificates } from '../../apiserver/index.ts';
import { decodeJson, fields, own } from '../../base/decode.ts';
import type { Log } from '../../base/log.ts';
import { type OpenSecret, readSecret } from '../config/files.ts';
import { type FollowedFile, followFile } from '../config/followed-file.ts';
import { pemBlocks } from './authentication.ts';
import { type NamedFiles, namedCertificates } from './named-certificates.ts';
import { namedFiles } from './serving.ts';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Path of each file, by the certificate or key in it. */
interface Files {
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  readonly clientCa: string | undefined;
  readonly proxyCa: string | undefined;
  readonly kubeletCertificate: string | undefined;
  readonly kubeletKey: string | undefined;
  readonly kubeletCa: string | undefined;
  readonly proxyCertificate: string | undefined;
  readonly proxyKey: string | undefined;
  readonly tokenKey: string | undefined;
}

type Texts = Partial<Record<keyof Files, string>> & {
  named?: { certificate: string; key: string }[];
  publicKeys?: string[];
};

const KEYS = ['key', 'kubeletKey', 'proxyKey', 'tokenKey'] as const;
const PAIRS = [
  ['certificate', 'key'],
  ['kubeletCertificate', 'kubeletKey'],
  ['proxyCertificate', 'proxyKey'],
] as const;
const BUNDLES = ['clientCa', 'proxyCa', 'kubeletCa'] as const;

/**
 * Reloads the files of `config` when they change. If a certificate does not match its key, the change is logged and the
 * previous files remain in use.
 */
export async function followCertificates(
  values: ApiValues,
  config: ApiServerConfig,
  { referredToBy, onOpenSecret }: { readonly referredToBy: string; readonly onOpenSecret?: OpenSecret | undefined },
  log: Log,
): Promise<FollowedCertificates & Pick<FollowedFile<unknown>, 'refresh' | 'stop'>> {
  const files: Files = {
    certificate: values.file('tls-cert-file'),
    key: values.file('tls-private-key-file'),
    clientCa: values.file('client-ca-file'),
    proxyCa: values.file('requestheader-client-ca-file'),
    kubeletCertificate: values.file('kubelet-client-certificate'),
    kubeletKey: values.file('kubelet-client-key'),
    kubeletCa: values.file('kubelet-certificate-authority'),
    proxyCertificate: values.file('proxy-client-cert-file'),
    proxyKey: values.file('proxy-client-key-file'),
    tokenKey: values.file('service-account-signing-key-file'),
  };
  const publicKeys = values.files('service-account-key-file');
  const named = namedFiles(values);
  const read = async (): Promise<string> => {
    const texts: Texts = {};
    for (const [what, file] of Object.entries(files) as [keyof Files, string | undefined][])
      if (file !== undefined) texts[what] = await readFile(file, 'utf8');
    if (named.length > 0) {
      const each = named.map(async ({ certificate, key }) => ({
        certificate: await readFile(certificate, 'utf8'),
        key: await readFile(key, 'utf8'),
      }));
      texts.named = await Promise.all(each);
    }
    if (files.tokenKey !== undefined)
      texts.publicKeys = await Promise.all(publicKeys.map((file) => readFile(file, 'utf8')));
    return JSON.stringify(texts);
  };
  const listeners: Array<() => void> = [];
  let isFirst = true;
  const followed = await followFile(files.certificate ?? files.clientCa ?? 'the certificates of the flags', {
    what: 'certificate',
    log,
    first: read,
    read,
    files: [
      ...Object.values(files).filter((file) => file !== undefined),
      ...named.flatMap(({ certificate, key }) => [certificate, key]),
      ...(files.tokenKey === undefined ? [] : publicKeys),
    ],
    parse: async (text) => {
      const texts = decodeJson(own<Texts>(fields), text, 'certificates');
      // The first read of the configuration has already reported world-readable files.
      const keys = [...KEYS.map((what) => files[what]), ...named.map(({ key }) => key)].filter(
        (file) => file !== undefined,
      );
      if (!isFirst) for (const key of keys) await readSecret(key, referredToBy, onOpenSecret);
      isFirst = false;
      return settingsOf(texts, config, files, named);
    },
    changed: () => {
      for (const listener of listeners) listener();
    },
  });
  return {
    get current(): CertificateSettings {
      return followed.current;
    },
    subscribe: (changed) => void listeners.push(changed),
    refresh: followed.refresh,
    stop: followed.stop,
  };
}

/** Settings from the contents of the files. Throws an Error that names the invalid file and its problem. */
function settingsOf(
  texts: Texts,
  { serving }: ApiServerConfig,
  files: Files,
  named: readonly NamedFiles[],
): CertificateSettings {
  for (const [cert, key] of PAIRS) {
    const [certPem, keyPem] = [texts[cert], texts[key]];
    if (certPem === undefined || keyPem === undefined) continue;
    if (!new X509Certificate(certPem).checkPrivateKey(createPrivateKey(keyPem)))
      throw new Error(`${files[key]} is not the key of ${files[cert]}`);
  }
  for (const what of BUNDLES) {
    const bundle = texts[what];
    if (bundle === undefined) continue;
    const blocks = bundle.match(CERTIFICATE);
    if (blocks === null) throw new Error(`${files[what]} holds no certificate`);
    for (const block of blocks) new X509Certificate(block);
  }
  if (texts.tokenKey !== undefined) createPrivateKey(texts.tokenKey);
  const { certificate, key, clientCa, proxyCa } = texts;
  return {
    serving: certificate === undefined || key === undefined ? serving : { certificate, key },
    ...(named.length === 0 ? {} : { named: namedCertificates(named, texts.named ?? []) }),
    ...(clientCa === undefined ? {} : { clientCa }),
    ...(proxyCa === undefined ? {} : { proxyCa }),
    ...clientsOf(texts),
  };
}

/** The server's own client certificates, and the keys of service account tokens. */
function clientsOf(texts: Texts): Pick<CertificateSettings, 'kubelet' | 'proxyClient' | 'tokenKeys'> {
  const { kubeletCertificate, kubeletKey, kubeletCa, proxyCertificate, proxyKey, tokenKey, publicKeys = [] } = texts;
  return {
    ...(kubeletCertificate === undefined || kubeletKey === undefined
      ? {}
      : {
          kubelet: {
            certificate: kubeletCertificate,
            key: kubeletKey,
            ...(kubeletCa === undefined ? {} : { ca: kubeletCa }),
          },
        }),
    ...(proxyCertificate === undefined || proxyKey === undefined
      ? {}
      : { proxyClient: { certificate: proxyCertificate, key: proxyKey } }),
    ...(tokenKey === undefined
      ? {}
      : { tokenKeys: { signingKey: tokenKey, publicKeys: publicKeys.flatMap(pemBlocks) } }),
  };
}
