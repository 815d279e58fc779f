/** The OAuth server of this API server. */
import { readFile } from 'node:fs/promises';
import type { Log } from '../../base/log.ts';
import type { ApiServerConfig } from '../../components/apiserver/index.ts';
import type { CreateLogin } from '../../components/apiserver/login-port.ts';
import { createOAuthServer } from '../../components/openshift/oauth/index.ts';
import { issuedBy, ldap, PasswordThread, web } from '../../io/login/index.ts';
import { openAssets } from '../assets.ts';
import type { OpenShiftSettings } from '../config/openshift.ts';
import { systemClock as clock, systemRandom as random } from '../process.ts';

/** Unpacks the worker script for passwords. Throws CodedError 'assets'. */
export async function createLoginFor(
  { advertiseAddress, advertisePort, port }: ApiServerConfig,
  openshift: OpenShiftSettings | undefined,
  log: Log,
): Promise<CreateLogin> {
  await openAssets();
  const host = advertiseAddress.includes(':') ? `[${advertiseAddress}]` : advertiseAddress;
  return (objects) =>
    createOAuthServer(objects, {
      ports: { passwords: new PasswordThread(), ldap, web, issuedBy, readFile: (path) => readFile(path, 'utf8') },
      log,
      clock,
      random,
      identityProviders: openshift?.identityProviders ?? [],
      address: `https://${host}:${advertisePort ?? port}`,
      domain: openshift?.domain ?? 'apps.cluster.local',
    });
}
