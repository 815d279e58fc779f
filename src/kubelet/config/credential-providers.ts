/** Parses `CredentialProviderConfig` of kubelet.config.k8s.io/v1. */

import { CodedError } from '../../base/errors.ts';
import { parseDuration } from '../../base/time/duration.ts';
import { checkedString, dictionary, list, object, oneOf, readConfigFile, string } from '../../wire/strict-yaml.ts';
import type { ProviderConfig } from '../io/credential-providers/index.ts';

const duration = checkedString((text) =>
  parseDuration(text) === undefined ? 'give a duration such as 12h' : undefined,
);

const field = object(
  {
    apiVersion: oneOf('kubelet.config.k8s.io/v1'),
    kind: oneOf('CredentialProviderConfig'),
    providers: list(
      object(
        {
          name: string({ pattern: /^[a-zA-Z0-9][a-zA-Z0-9._-]*$/, fix: 'give the name of a program' }),
          matchImages: list(string()),
          defaultCacheDuration: duration,
          apiVersion: oneOf('credentialprovider.kubelet.k8s.io/v1'),
          args: list(string()),
          env: list(dictionary(string())),
        },
        ['name', 'matchImages', 'defaultCacheDuration', 'apiVersion'],
      ),
    ),
  },
  ['apiVersion', 'kind', 'providers'],
);

/** Throws CodedError 'bad-config' with file, line and field. */
export async function readProviders(file: string): Promise<readonly ProviderConfig[]> {
  const config = await readConfigFile(file, field);
  if (config === undefined)
    throw new CodedError('bad-config', `${file} does not exist; correct images.credentialProviders.config`);
  return config.providers.map(({ name, matchImages, defaultCacheDuration, apiVersion, args, env }) => ({
    name,
    matchImages,
    apiVersion,
    defaultCacheDurationMs: parseDuration(defaultCacheDuration) ?? 0,
    args: args ?? [],
    env: Object.fromEntries((env ?? []).map((each) => [each.get('name') ?? '', each.get('value') ?? ''])),
  }));
}
