/** Converts the authorization flags to authorizers, either fixed by flags or reloaded from a file. */

import { parseAuthorization } from '../../apiserver/config/authorization.ts';
import type { ApiValues } from '../../apiserver/config/index.ts';
import type { ApiServerConfig, AuthorizationMode, Authorizer } from '../../apiserver/index.ts';
import type { Log } from '../../base/log.ts';
import { type OpenSecret, readReferenced } from '../config/files.ts';
import { type FollowedFile, followFile } from '../config/followed-file.ts';
import { resolveRelativeTo } from '../config/master-config.ts';
import { readRemoteEndpoint } from './remote-endpoint.ts';

/** Flags that must not be combined with `--authorization-config`. */
const EXCLUDED = [
  'authorization-mode',
  'authorization-webhook-config-file',
  'authorization-webhook-version',
  'authorization-webhook-cache-authorized-ttl',
  'authorization-webhook-cache-unauthorized-ttl',
] as const;

/**
 * Authorizers in the order in which they decide. Throws CodedErrors and ApiUsageProblems that name the flag or the
 * file.
 */
export async function authorizersOf(
  values: ApiValues,
  referredToBy: string,
  onOpenSecret?: OpenSecret,
): Promise<Required<Pick<ApiServerConfig, 'authorizers'>>> {
  const file = values.file('authorization-config');
  if (file === undefined) return { authorizers: await authorizersOfFlags(values, referredToBy, onOpenSecret) };
  for (const name of EXCLUDED) {
    if (values.has(name))
      values.refuse('authorization-config', `and --${name} exclude each other; write it into the file`);
  }
  return { authorizers: await parsed(file, onOpenSecret)(await readReferenced(file, referredToBy)) };
}

/** Authorizers from the configuration file, reloaded on change; undefined if no flag names a file. */
export async function followAuthorizers(
  values: ApiValues,
  referredToBy: string,
  log: Log,
  onOpenSecret?: OpenSecret,
): Promise<FollowedFile<readonly Authorizer[]> | undefined> {
  const file = values.file('authorization-config');
  if (file === undefined) return undefined;
  const first = (): Promise<string> => readReferenced(file, referredToBy);
  return followFile(file, { what: 'authorization', log, first, parse: parsed(file, onOpenSecret) });
}

const parsed =
  (file: string, onOpenSecret?: OpenSecret) =>
  (text: string): Promise<readonly Authorizer[]> =>
    parseAuthorization(text, file, (kubeconfig) =>
      readRemoteEndpoint(resolveRelativeTo(file, kubeconfig), file, onOpenSecret),
    );

async function authorizersOfFlags(
  values: ApiValues,
  referredToBy: string,
  onOpenSecret?: OpenSecret,
): Promise<readonly Authorizer[]> {
  const modes = authorizationModes(values);
  const file = values.file('authorization-webhook-config-file');
  if (!modes.includes('Webhook')) return modes.map((type) => ({ type }) as Authorizer);
  if (file === undefined)
    return values.refuse('authorization-webhook-config-file', 'is required with --authorization-mode=Webhook');
  const webhook = {
    endpoint: await readRemoteEndpoint(file, referredToBy, onOpenSecret),
    version: values.text('authorization-webhook-version') === 'v1beta1' ? 'v1beta1' : 'v1',
    allowedMs: values.milliseconds('authorization-webhook-cache-authorized-ttl'),
    deniedMs: values.milliseconds('authorization-webhook-cache-unauthorized-ttl'),
  } as const;
  return modes.map((type) => (type === 'Webhook' ? { type, webhook } : { type }));
}

function authorizationModes(values: ApiValues): AuthorizationMode[] {
  const known: readonly string[] = ['Node', 'RBAC', 'Webhook', 'AlwaysAllow', 'AlwaysDeny'];
  const modes = values.list('authorization-mode');
  const strange = modes.find((mode) => !known.includes(mode));
  if (strange !== undefined)
    values.refuse('authorization-mode', `"${strange}" is not accepted; give some of ${known.join(', ')}`);
  if (new Set(modes).size < modes.length) values.refuse('authorization-mode', 'a mode is given twice; remove one');
  if (modes.length === 0) values.refuse('authorization-mode', 'is empty; give RBAC');
  return modes as AuthorizationMode[];
}
