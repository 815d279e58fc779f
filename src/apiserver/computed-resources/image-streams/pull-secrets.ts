/** Pull secrets of a namespace, used for imports into its image streams. */
import type { Secret } from '../../../api/generated/core/v1.ts';
import type { WatchCache } from '../../watch-cache/watch-cache.ts';

const PULL_SECRETS = new Set(['kubernetes.io/dockercfg', 'kubernetes.io/dockerconfigjson']);

export const pullSecretsOf = (cache: WatchCache, namespace: string): Secret[] =>
  cache
    .kind('secrets')
    .list(namespace)
    .map((each) => each.parse<Secret>())
    .filter(({ type = '' }) => PULL_SECRETS.has(type));
