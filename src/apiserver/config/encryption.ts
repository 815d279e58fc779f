/**
 * Parses upstream's EncryptionConfiguration file. Source: apiserver.config.k8s.io/v1,
 * k8s.io/apiserver/pkg/apis/apiserver/validation.
 */

import { CodedError } from '../../base/errors.ts';
import { parseDuration } from '../../base/time/duration.ts';
import type { Field, Parsed } from '../../wire/strict-yaml.ts';
import { checkedString, integer, list, object, oneOf, parseConfig, string } from '../../wire/strict-yaml.ts';
import type { EncryptionConfiguration, EncryptionProvider, KmsPlugin } from '../index.ts';

export type OpenKmsPlugin = (options: { readonly socket: string; readonly timeoutMs: number }) => KmsPlugin;

const AES_SIZES = [16, 24, 32];
const BOX_SIZES = [32];
const DEFAULT_TIMEOUT_MS = 3_000;

/** Name of a key. Stored values begin with the key name and a colon, so a name must not contain a colon. */
const keyName = (): Field<string> =>
  string({ pattern: /^[^:\s]{1,128}$/, fix: 'a key name has no colon and no spaces' });

const keyList = (sizes: readonly number[]) =>
  object(
    {
      keys: list(
        object(
          {
            name: keyName(),
            // Error messages must not contain the secret.
            secret: secret(sizes),
          },
          ['name', 'secret'],
        ),
      ),
    },
    ['keys'],
  );

function secret(sizes: readonly number[]): Field<Uint8Array> {
  const text = string();
  return {
    parse: (at) => {
      const value = text.parse(at);
      if (!/^[A-Za-z0-9+/]*={0,2}$/.test(value) || value.length % 4 !== 0)
        return at.fail('is not base64; head -c 32 /dev/urandom | base64 makes a key');
      const bytes = Buffer.from(value, 'base64');
      return sizes.includes(bytes.length)
        ? bytes
        : at.fail(`is ${bytes.length} bytes long; it must be ${sizes.join(', ')} before base64`);
    },
  };
}

const duration = (): Field<string> =>
  checkedString((text) => ((parseDuration(text) ?? 0) > 0 ? undefined : 'give a duration such as 3s'));

const provider = object({
  identity: object({}),
  aesgcm: keyList(AES_SIZES),
  aescbc: keyList(AES_SIZES),
  secretbox: keyList(BOX_SIZES),
  kms: object(
    {
      apiVersion: oneOf('v2'),
      name: string({ pattern: /^[^:\s]{1,128}$/, fix: 'a name has no colon and no spaces' }),
      endpoint: string({ pattern: /^unix:\/\/./, fix: 'give a socket as unix:///run/kms.sock' }),
      timeout: duration(),
      cachesize: integer(0, 1_000_000),
    },
    ['apiVersion', 'name', 'endpoint'],
  ),
});

const RESOURCE = /^(?:\*|[a-z0-9-]+)(?:\.(?:\*|[a-z0-9.-]*))?$/;

const field = object(
  {
    apiVersion: oneOf('apiserver.config.k8s.io/v1'),
    kind: oneOf('EncryptionConfiguration'),
    resources: list(
      object(
        {
          resources: list(
            checkedString((text) =>
              RESOURCE.test(text) && text !== '*'
                ? undefined
                : 'give resources such as secrets, deployments.apps, *.apps, *. or *.*',
            ),
          ),
          providers: list(provider),
        },
        ['resources', 'providers'],
      ),
    ),
  },
  ['apiVersion', 'kind', 'resources'],
);

type ParsedProvider = ReturnType<typeof provider.parse>;
export type EncryptionFile = Parsed<{ resources: Field<ReturnType<typeof field.parse>['resources']> }, 'resources'>;

/** Parses the file. Throws CodedError 'bad-config' with file, line and field, but never with keys. */
export function parseEncryption(text: string, file: string, open: OpenKmsPlugin): EncryptionConfiguration {
  const { resources } = parseConfig(text, file, field);
  const refuse = (place: string, what: string): never => {
    throw new CodedError('bad-config', `${file}: ${place}: ${what}`);
  };
  const plugins = new Map<string, EncryptionProvider>();
  return {
    resources: resources.map((entry, index) => {
      const place = `resources[${index}]`;
      if (entry.resources.length === 0) refuse(`${place}.resources`, 'name at least one resource');
      if (entry.providers.length === 0)
        refuse(`${place}.providers`, 'give at least one provider; identity stores objects without encryption');
      return {
        resources: entry.resources,
        providers: entry.providers.map((each, at) =>
          providerOf(each, (what) => refuse(`${place}.providers[${at}]`, what), plugins, open),
        ),
      };
    }),
  };
}

function providerOf(
  given: ParsedProvider,
  refuse: (what: string) => never,
  plugins: Map<string, EncryptionProvider>,
  open: OpenKmsPlugin,
): EncryptionProvider {
  const types = Object.keys(given);
  if (types.length !== 1) refuse(`holds ${types.join(' and ') || 'nothing'}; give one provider an entry of its own`);
  if (given.identity !== undefined) return { type: 'identity' };
  if (given.kms !== undefined) {
    const { name, endpoint, timeout } = given.kms;
    let plugin = plugins.get(name);
    if (plugin === undefined) {
      const timeoutMs = timeout === undefined ? DEFAULT_TIMEOUT_MS : (parseDuration(timeout) ?? DEFAULT_TIMEOUT_MS);
      plugin = { type: 'kms', name, plugin: open({ socket: endpoint.slice('unix://'.length), timeoutMs }) };
      plugins.set(name, plugin);
    }
    return plugin;
  }
  for (const type of ['aesgcm', 'aescbc', 'secretbox'] as const) {
    const keys = given[type]?.keys;
    if (keys === undefined) continue;
    if (keys.length === 0) refuse(`${type}.keys is empty; give at least one key`);
    const names = new Set(keys.map(({ name }) => name));
    if (names.size < keys.length) refuse(`${type}.keys: two keys have one name; rename one`);
    return { type, keys };
  }
  return refuse('holds no provider');
}
