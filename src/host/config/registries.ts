/**
 * `/etc/origin/registries.yaml` in the format of k3s: mirrors with rewrites, credentials and TLS settings by registry.
 * The file is merged with `registries` of the bootstrap file.
 */

import { mkdir, readFile, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { decodeJson, fields, own } from '../../base/decode.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { secretFileProblem } from '../../base/files/secret-file.ts';
import { writeIfDifferent } from '../../pki/index.ts';
import type { RegistryHost, RegistryOptions, Rewrite } from '../../runtime/images/index.ts';
import { boolean, dictionary, list, object, readConfigFile, string } from '../../wire/strict-yaml.ts';
import { outboundOf, shareOutbound } from './outbound.ts';
import type { Settings } from './settings.ts';

const ENDPOINT =
  /^(?:(https?):\/\/)?([a-zA-Z0-9][a-zA-Z0-9.-]*(?::\d{1,5})?|\[[0-9a-fA-F:]+\](?::\d{1,5})?)(?:\/v2\/?|\/)?$/;
const endpoint = string({ pattern: ENDPOINT, fix: 'give an endpoint such as https://mirror.lab:5000' });

const credential = () => string({ pattern: /^/, fix: 'give a text', secret: true });

const field = object({
  mirrors: dictionary(object({ endpoint: list(endpoint), rewrite: dictionary(string()) })),
  configs: dictionary(
    object({
      auth: object({ username: credential(), password: credential() }, ['username', 'password']),
      tls: object({ ca_file: string(), cert_file: string(), key_file: string(), insecure_skip_verify: boolean() }),
    }),
  ),
});

const isSecret = (text: string): boolean => /^\s*(?:password|auth)\s*:/m.test(text);

/**
 * Registry options from the file and the bootstrap file. Throws CodedError 'bad-config' with file, line and field. A
 * file with credentials that other users can read is an error.
 */
export async function registryOptions(settings: Settings): Promise<RegistryOptions> {
  const { registries, embedded } = settings;
  const outbound = await outboundOf(settings);
  const file = embedded.images.registriesFile;
  const own = [...registries];
  const mirrors: Record<string, readonly string[]> = Object.fromEntries(
    own.flatMap(([host, { mirrors: each }]) => (each === undefined ? [] : [[host, each]])),
  );
  const insecure = own.filter(([, each]) => each.insecure === true).map(([host]) => host);
  const config = await readConfigFile(file, field);
  if (config === undefined) return { mirrors, insecureRegistries: insecure, outbound };
  await refuseOpenSecret(file);
  const rewrites: Record<string, readonly Rewrite[]> = {};
  for (const [registry, { endpoint: endpoints = [], rewrite }] of config.mirrors ?? []) {
    const hosts = endpoints.map((each) => {
      const [, scheme, host = ''] = ENDPOINT.exec(each) ?? [];
      if (scheme === 'http') insecure.push(host);
      return host;
    });
    mirrors[registry] = [...new Set([...(mirrors[registry] ?? []), ...hosts])];
    if (rewrite !== undefined)
      rewrites[registry] = [...rewrite].map(([pattern, replacement]) => ({
        pattern: patternOf(file, registry, pattern),
        replacement,
      }));
  }
  const hosts: Record<string, RegistryHost> = {};
  for (const [host, { auth, tls }] of config.configs ?? []) {
    hosts[host === 'docker.io' ? 'registry-1.docker.io' : host] = {
      ...(auth === undefined ? {} : { auth }),
      ...(tls?.insecure_skip_verify === true ? { skipVerify: true } : {}),
      ...(tls?.ca_file === undefined ? {} : { ca: await pem(file, tls.ca_file) }),
      ...(tls?.cert_file === undefined ? {} : { cert: await pem(file, tls.cert_file) }),
      ...(tls?.key_file === undefined ? {} : { key: await pem(file, tls.key_file) }),
    };
  }
  return { mirrors, insecureRegistries: insecure, rewrites, hosts, outbound };
}

function patternOf(file: string, registry: string, pattern: string): RegExp {
  try {
    return new RegExp(pattern);
  } catch (error) {
    throw new CodedError('bad-config', `${file}: mirrors.${registry}.rewrite: ${messageOf(error)}`, { cause: error });
  }
}

async function pem(file: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new CodedError('bad-config', `${file}: ${path}: ${messageOf(error)}`, { cause: error });
  }
}

async function refuseOpenSecret(file: string): Promise<void> {
  if (!isSecret(await readFile(file, 'utf8'))) return;
  const problem = secretFileProblem(file, await stat(file), process.geteuid?.() ?? 0);
  if (problem !== undefined) throw new CodedError('bad-config', problem);
}

/**
 * Name of the file with the host's registry configuration. It is in the directory of master-config.yaml, which the API
 * server's pod mounts.
 */
const SHARED = 'image-registries.json';

/** Writes the registry configuration and the proxy settings for the API server of this host. */
export async function shareRegistries(settings: Settings, options: RegistryOptions): Promise<void> {
  const { roles, paths } = settings;
  if (options.outbound !== undefined) await shareOutbound(settings, options.outbound);
  if (!roles.has('master')) return;
  const directory = dirname(paths.masterConfig);
  const { mirrors, insecureRegistries, hosts = {} } = options;
  if (Object.keys(mirrors).length + insecureRegistries.length + Object.keys(hosts).length === 0) {
    await rm(join(directory, SHARED), { force: true });
    return;
  }
  await mkdir(directory, { recursive: true, mode: 0o755 });
  const rewrites = Object.entries(options.rewrites ?? {}).map(([registry, rules]) => [
    registry,
    rules.map(({ pattern, replacement }) => ({ pattern: pattern.source, replacement })),
  ]);
  const shared = { ...options, rewrites: Object.fromEntries(rewrites) };
  await writeIfDifferent(join(directory, SHARED), JSON.stringify(shared), { mode: 0o600 });
}

/** Registry options as JSON: the regular expressions are strings. */
interface SharedRegistries extends Omit<RegistryOptions, 'rewrites'> {
  readonly rewrites: Readonly<Record<string, readonly { readonly pattern: string; readonly replacement: string }[]>>;
}

/** Reads the options that `shareRegistries` has written; undefined if there is no file. */
export async function sharedRegistries(masterConfig: string): Promise<RegistryOptions | undefined> {
  const text = await readFile(join(dirname(masterConfig), SHARED), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const { rewrites, ...options } = decodeJson(own<SharedRegistries>(fields), text, SHARED);
  return {
    ...options,
    rewrites: Object.fromEntries(
      Object.entries(rewrites).map(([registry, rules]) => [
        registry,
        rules.map(({ pattern, replacement }) => ({ pattern: new RegExp(pattern), replacement })),
      ]),
    ),
  };
}
