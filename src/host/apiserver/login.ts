/** The OAuth server of this API server. */
import { readFile } from 'node:fs/promises';
import type { ApiServerConfig } from '../../apiserver/index.ts';
import type { CreateLogin } from '../../apiserver/server/login-port.ts';
import type { Log } from '../../base/log.ts';
import type { OpenShiftSettings } from '../../openshift/oauth/config/login-config.ts';
import { createOAuthServer } from '../../openshift/oauth/index.ts';
import { createWeb, issuedBy, ldap, PasswordThread } from '../../openshift/oauth/io/index.ts';
import type { OutboundSettings } from '../../wire/outbound/proxy-choice.ts';
import { openAssets } from '../process/assets.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';

/** Creates the OAuth server. Unpacks the worker script that hashes passwords. Throws CodedError 'assets'. */
export async function createLoginFor(
  { advertiseAddress, advertisePort, port }: ApiServerConfig,
  openshift: OpenShiftSettings | undefined,
  outbound: OutboundSettings,
  { log, console }: { readonly log: Log; readonly console: boolean },
): Promise<CreateLogin> {
  await openAssets();
  const host = advertiseAddress.includes(':') ? `[${advertiseAddress}]` : advertiseAddress;
  return (objects) =>
    createOAuthServer(objects, {
      ports: {
        passwords: new PasswordThread(),
        ldap,
        web: createWeb(outbound),
        issuedBy,
        readFile: (path) => readFile(path, 'utf8'),
      },
      log,
      clock,
      random,
      identityProviders: openshift?.identityProviders ?? [],
      address: `https://${host}:${advertisePort ?? port}`,
      domain: openshift?.domain ?? 'apps.cluster.local',
      console,
    });
}
