/**
 * Bootstrap tokens of joining nodes: `id.secret`, stored in secrets in kube-system. Source:
 * k8s.io/kubernetes/plugin/pkg/auth/authenticator/token/bootstrap; docs "Authenticating with bootstrap tokens".
 */
import { timingSafeEqual } from 'node:crypto';
import type { Secret } from '../../api/generated/core/v1.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';

const TOKEN = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;
const TYPE = 'bootstrap.kubernetes.io/token';
const GROUP = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;
const DEFAULT_GROUP = 'system:bootstrappers';

export function authenticateBootstrapToken(cache: WatchCache, token: string, nowMs: number): UserInfo | undefined {
  const [, id, given] = TOKEN.exec(token) ?? [];
  if (id === undefined || given === undefined) return undefined;
  const secret = cache.kind('secrets').get('kube-system', `bootstrap-token-${id}`)?.parse<Secret>();
  if (secret === undefined || secret.type !== TYPE || secret.metadata?.deletionTimestamp !== undefined)
    return undefined;
  const field = (name: string): string => Buffer.from(secret.data?.[name] ?? '', 'base64').toString('utf8');
  const known = Buffer.from(field('token-secret'));
  const offered = Buffer.from(given);
  if (known.length !== offered.length || !timingSafeEqual(known, offered)) return undefined;
  if (field('token-id') !== id || field('usage-bootstrap-authentication') !== 'true') return undefined;
  const expires = field('expiration');
  // A token with an invalid expiration time counts as expired.
  if (expires !== '' && !(Date.parse(expires) > nowMs)) return undefined;
  const extra = field('auth-extra-groups')
    .split(',')
    .filter((group) => group !== '');
  if (!extra.every((group) => GROUP.test(group))) return undefined;
  const groups = [...new Set([DEFAULT_GROUP, ...extra])].sort();
  return { name: `system:bootstrap:${id}`, groups: [...groups, 'system:authenticated'] };
}
