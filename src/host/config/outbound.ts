/**
 * Settings for requests to other networks, from `proxy` of the bootstrap file and the proxy variables of the systemd
 * unit.
 */
import { mkdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { OpenShiftLayer } from '../../apiserver/config/server-config.ts';
import { decodeJson, fields, own } from '../../base/decode.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { writeIfDifferent } from '../../pki/index.ts';
import { certificatesIn } from '../../wire/outbound/authorities.ts';
import { DIRECT, type OutboundSettings, settingsFromEnvironment } from '../../wire/outbound/proxy-choice.ts';
import { type Field, list, object, string } from '../../wire/strict-yaml.ts';
import type { Settings } from './settings.ts';

const PROXY_FIX = 'give the URL of a proxy such as http://proxy.lab:3128';

const PROXY_URL = /^https?:\/\/(?:[^\s/@]+@)?(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?\/?$/;

const proxyUrl = (): Field<string> => string({ pattern: PROXY_URL, fix: PROXY_FIX, secret: true });

export const proxyField = () =>
  object({
    httpProxy: proxyUrl(),
    httpsProxy: proxyUrl(),
    noProxy: list(string({ pattern: /^[^\s,]+$/, fix: 'give a host, a domain such as .lab, an address or a network' })),
    trustedCA: string({ pattern: /^\//, fix: 'give the absolute path of a PEM file' }),
  });

type ProxyFile = Pick<Settings, 'proxy'>['proxy'];

/** Destinations that requests of this host always reach without a proxy. */
const alwaysDirect = ({ network, masters, addresses }: Settings): string[] => [
  ...['localhost', '127.0.0.0/8', '::1', '169.254.0.0/16', 'fe80::/10', '.svc', `.${network.clusterDomain}`],
  ...[...network.clusterCidrs, ...network.serviceCidrs, ...addresses],
  ...masters.map((url) => new URL(url).hostname),
];

/**
 * Settings for requests to registries, identity providers and other servers outside the cluster. Fields of the
 * bootstrap file take precedence over environment variables. Throws CodedError 'bad-config' with the field or variable.
 */
export async function outboundOf(
  settings: Settings,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<OutboundSettings> {
  const { proxy } = settings;
  const variables = settingsFromEnvironment(env);
  const httpProxy = proxy.httpProxy ?? variables.httpProxy;
  const httpsProxy = proxy.httpsProxy ?? variables.httpsProxy;
  for (const [name, url] of [
    ['HTTP_PROXY', httpProxy],
    ['HTTPS_PROXY', httpsProxy],
  ]) {
    if (url !== undefined && !PROXY_URL.test(url)) throw new CodedError('bad-config', `${name}: ${PROXY_FIX}`);
  }
  const given = proxy.noProxy ?? variables.noProxy;
  const authorities = await readAuthorities(proxy);
  return {
    ...(httpProxy === undefined ? {} : { httpProxy }),
    ...(httpsProxy === undefined ? {} : { httpsProxy }),
    noProxy: [...new Set([...given, ...alwaysDirect(settings)])],
    ...(authorities === undefined ? {} : { authorities }),
  };
}

async function readAuthorities({ trustedCA }: ProxyFile): Promise<string | undefined> {
  if (trustedCA === undefined) return undefined;
  let text: string;
  try {
    text = await readFile(trustedCA, 'utf8');
  } catch (error) {
    throw new CodedError('bad-config', `proxy.trustedCA: ${messageOf(error)}`, { cause: error });
  }
  if (certificatesIn(text).length > 0) return text;
  throw new CodedError('bad-config', `proxy.trustedCA: ${trustedCA} has no certificate; give a file in PEM format`);
}

/** The URL of a proxy with user and password replaced by a note. */
export function withoutPassword(url: string): string {
  if (!url.includes('@')) return url;
  const shown = new URL(url);
  return `${shown.protocol}//(not shown)@${shown.host}`;
}

/** The proxy that the object `cluster` of kind Proxy shows. Empty if no proxy is configured. */
export function shownProxy({ httpProxy, httpsProxy, noProxy }: OutboundSettings): Pick<OpenShiftLayer, 'proxy'> {
  if (httpProxy === undefined && httpsProxy === undefined) return {};
  return {
    proxy: {
      ...(httpProxy === undefined ? {} : { httpProxy: withoutPassword(httpProxy) }),
      ...(httpsProxy === undefined ? {} : { httpsProxy: withoutPassword(httpsProxy) }),
      noProxy,
    },
  };
}

/**
 * Name of the file with the settings for the API server. It is in the directory of master-config.yaml, which the API
 * server's pod mounts. It may contain a password.
 */
export const SHARED_OUTBOUND = 'outbound.json';

/** Writes the settings for the API server of this host; `sharedOutbound` reads them. */
export async function shareOutbound({ roles, paths }: Settings, outbound: OutboundSettings): Promise<void> {
  if (!roles.has('master')) return;
  const directory = dirname(paths.masterConfig);
  const { httpProxy, httpsProxy, authorities } = outbound;
  if (httpProxy === undefined && httpsProxy === undefined && authorities === undefined) {
    await rm(join(directory, SHARED_OUTBOUND), { force: true });
    return;
  }
  await mkdir(directory, { recursive: true, mode: 0o755 });
  await writeIfDifferent(join(directory, SHARED_OUTBOUND), JSON.stringify(outbound), { mode: 0o600 });
}

/** Reads the settings that `shareOutbound` has written. */
export async function sharedOutbound(masterConfig: string): Promise<OutboundSettings> {
  const text = await readFile(join(dirname(masterConfig), SHARED_OUTBOUND), 'utf8').catch(() => undefined);
  return text === undefined ? DIRECT : decodeJson(own<OutboundSettings>(fields), text, SHARED_OUTBOUND);
}
