/** Keys that verify releases for this host, from the bootstrap file and the ConfigMap release-keys. */
import type { KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ConfigMap } from '../../api/generated/core/v1.ts';
import { KEYS_NAME, KEYS_NAMESPACE } from '../../api/releases/announcement.ts';
import { resources } from '../../api/resources.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { RELEASE_KEY } from '../../base/versions/version.ts';
import type { InformerFactory } from '../../client/index.ts';
import { createVerifier, parseTrustedKey } from '../../openshift/updates/io/index.ts';
import type { VerifyRelease } from '../../openshift/updates/releases-port.ts';
import { loadSettings, type Settings } from '../config/settings.ts';

const MAX_KEYS = 32;

export function releaseVerifier({ updates }: Settings, informers: InformerFactory, log: Log): VerifyRelease {
  const own = updates.keys.map(parseTrustedKey);
  let keys: readonly KeyObject[] = own;
  const learn = (map: ConfigMap | undefined): void => {
    keys = [...own, ...keysOf(map, (name, why) => log.warn('release key refused', { key: name, reason: why }))];
  };
  const informer = informers.informer(resources.configMaps, {
    namespace: KEYS_NAMESPACE,
    fieldSelector: `metadata.name=${KEYS_NAME}`,
  });
  informer.onChange({ added: learn, updated: learn, deleted: () => learn(undefined) });
  informer.start();
  return createVerifier(() => keys);
}

export function keysOf(map: ConfigMap | undefined, refused: (name: string, why: string) => void): KeyObject[] {
  return Object.entries(map?.data ?? {})
    .slice(0, MAX_KEYS)
    .flatMap(([name, text]) => {
      try {
        return [parseTrustedKey(text)];
      } catch (error) {
        refused(name, messageOf(error));
        return [];
      }
    });
}

/** The given key. Without it, the keys in the bootstrap file and the key of this executable's release. */
export async function trustedKeys(options: {
  readonly key: string | undefined;
  readonly root: string | undefined;
}): Promise<KeyObject[]> {
  if (options.key !== undefined) return [await keyFrom(options.key, parseTrustedKey)];
  const { updates } = await loadSettings({ root: options.root });
  return [...updates.keys, ...(RELEASE_KEY === '' ? [] : [RELEASE_KEY])].map(parseTrustedKey);
}

/** Reads a key from the file in `--key`. Throws CodedErrors that name the flag. */
export async function keyFrom(path: string, parse: (text: string) => KeyObject): Promise<KeyObject> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new CodedError('unreadable', `--key: ${messageOf(error)}`, { cause: error });
  });
  try {
    return parse(text);
  } catch (error) {
    throw new CodedError('bad-key', `--key ${path}: ${messageOf(error)}`, { cause: error });
  }
}
