/** The serving certificate and client CAs of the flags, reloaded without a restart, as upstream. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Log } from '../../base/log.ts';
import type { ApiServerConfig, CertificateSettings, FollowedCertificates } from '../../components/apiserver/index.ts';
import type { ApiValues } from '../config/apiserver/index.ts';
import { type OpenSecret, readSecret } from '../config/files.ts';
import { type FollowedFile, followFile } from '../config/followed-file.ts';
import { type NamedFiles, namedCertificates } from './named-certificates.ts';
import { namedFiles } from './serving.ts';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** The files, by what they hold. */
interface Files {
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  readonly clientCa: string | undefined;
  readonly proxyCa: string | undefined;
}

type Texts = Partial<Record<keyof Files, string>> & { named?: { certificate: string; key: string }[] };

/** Reloads the files of `config`; a mismatched set is logged and not used. */
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
  };
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
    return JSON.stringify(texts);
  };
  const listeners: Array<() => void> = [];
  let isFirst = true;
  const followed = await followFile(
    [...Object.values(files), ...named.map(({ certificate }) => certificate)]
      .filter((file) => file !== undefined)
      .join(', '),
    {
      what: 'certificate',
      log,
      first: read,
      read,
      parse: async (text) => {
        const texts = JSON.parse(text) as Texts;
        // The configuration's reader has warned of world-readable files at the start.
        const keys = [files.key, ...named.map(({ key }) => key)].filter((file) => file !== undefined);
        if (!isFirst) for (const key of keys) await readSecret(key, referredToBy, onOpenSecret);
        isFirst = false;
        return settingsOf(texts, config, files, named);
      },
      changed: () => {
        for (const listener of listeners) listener();
      },
    },
  );
  return {
    get current(): CertificateSettings {
      return followed.current;
    },
    subscribe: (changed) => void listeners.push(changed),
    refresh: followed.refresh,
    stop: followed.stop,
  };
}

/** Throws Errors with the file and its problem. */
function settingsOf(
  texts: Texts,
  { serving }: ApiServerConfig,
  files: Files,
  named: readonly NamedFiles[],
): CertificateSettings {
  const { certificate, key, clientCa, proxyCa } = texts;
  if (certificate !== undefined && key !== undefined) {
    if (!new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key)))
      throw new Error(`${files.key} is not the key of ${files.certificate}`);
  }
  for (const what of ['clientCa', 'proxyCa'] as const) {
    const bundle = texts[what];
    if (bundle === undefined) continue;
    const blocks = bundle.match(CERTIFICATE);
    if (blocks === null) throw new Error(`${files[what]} holds no certificate`);
    for (const block of blocks) new X509Certificate(block);
  }
  return {
    serving: certificate === undefined || key === undefined ? serving : { certificate, key },
    ...(named.length === 0 ? {} : { named: namedCertificates(named, texts.named ?? []) }),
    ...(clientCa === undefined ? {} : { clientCa }),
    ...(proxyCa === undefined ? {} : { proxyCa }),
  };
}
