/** Proxies of the networks in `--egress-selector-config-file`. The files that it references are read too. */

import { type EgressAddress, parseEgress } from '../../apiserver/config/egress.ts';
import type { ApiValues } from '../../apiserver/config/index.ts';
import type { EgressProxy, Network } from '../../apiserver/port.ts';
import { type OpenSecret, readReferenced, readSecret } from '../config/files.ts';

/** Proxy of each network. Throws CodedErrors that name the file and the field. */
export async function egressOf(
  values: ApiValues,
  referredToBy: string,
  onOpenSecret?: OpenSecret,
): Promise<ReadonlyMap<Network, EgressProxy>> {
  const file = values.file('egress-selector-config-file');
  const proxies = new Map<Network, EgressProxy>();
  if (file === undefined) return proxies;
  for (const [network, address] of parseEgress(await readReferenced(file, referredToBy), file))
    proxies.set(network, await proxyAt(address, values, file, onOpenSecret));
  return proxies;
}

async function proxyAt(
  address: EgressAddress,
  values: ApiValues,
  file: string,
  onOpenSecret: OpenSecret | undefined,
): Promise<EgressProxy> {
  if ('socket' in address) return { at: { socket: values.located(address.socket) } };
  const { host, port, tls } = address;
  const at = { host, port };
  if (tls === undefined) return { at };
  const { certificateFile, keyFile, authorityFile, serverName } = tls;
  return {
    at,
    tls: {
      certificate: await readReferenced(values.located(certificateFile), file),
      key: await readSecret(values.located(keyFile), file, onOpenSecret),
      ...(authorityFile === undefined ? {} : { authority: await readReferenced(values.located(authorityFile), file) }),
      ...(serverName === undefined ? {} : { serverName }),
    },
  };
}
