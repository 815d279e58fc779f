/** Keys that verify releases for this host: those of its bootstrap file and of the ConfigMap release-keys. */
import type { KeyObject } from 'node:crypto';
import type { ConfigMap } from '../../api/generated/core/v1.ts';
import { KEYS_NAME, KEYS_NAMESPACE } from '../../api/releases/announcement.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { InformerFactory } from '../../client/index.ts';
import { createVerifier, parseTrustedKey } from '../../openshift/updates/io/index.ts';
import type { VerifyRelease } from '../../openshift/updates/releases-port.ts';
import type { Settings } from '../config/settings.ts';

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
