/** The machine config server of a master, for `hyperedge install --from-mcs`. */

import { readFile } from 'node:fs/promises';
import { decodeJson, list, text as string } from '../../base/decode.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient } from '../../client/index.ts';
import { listenForConfigs } from '../../openshift/machine-config/io/server-listener/listener.ts';
import type { ConfigListener } from '../../openshift/machine-config/server/port.ts';
import { createMachineConfigServer } from '../../openshift/machine-config/server/server.ts';
import { masterFiles } from '../../pki/index.ts';
import { followFile } from '../config/followed-file.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process/process.ts';

const RETRY_MS = 10_000;

/**
 * Starts the server and returns a function that stops it. If the port is in use, the server retries and the host
 * continues without it.
 */
export function startMachineConfigServer(settings: Settings, client: ApiClient, log: Log): () => Promise<void> {
  if (!settings.roles.has('master')) return async () => {};
  const { machineConfigServer: port } = settings.ports;
  const { cert, key } = masterFiles(settings.root).server;
  const server = createMachineConfigServer({ client, podNetworks: settings.network.clusterCidrs, log });
  let stopped = false;
  let complained = false;
  let close: () => Promise<void> = async () => {};
  const open = async (): Promise<void> => {
    const read = async (): Promise<string> =>
      JSON.stringify(await Promise.all([readFile(cert, 'utf8'), readFile(key, 'utf8')]));
    let listener: ConfigListener | undefined;
    const pair = await followFile(cert, {
      what: 'machine config server certificate',
      log,
      first: read,
      read,
      files: [cert, key],
      parse: pairOf,
      changed: () => listener?.updateTls(pair.current),
    });
    try {
      const address = settings.nodeIp.includes(':') || settings.ipFamilies.length > 1 ? '::' : '0.0.0.0';
      const { admits, handle } = server;
      listener = await listenForConfigs({ address, port, tls: pair.current, admits, handle });
    } catch (error) {
      pair.stop();
      throw error;
    }
    const opened = listener;
    close = async () => {
      pair.stop();
      await opened.close();
    };
    log.info('machine config server listens', { port });
    if (stopped) await close();
  };
  let timer: { cancel(): void } | undefined;
  const tryOpen = (): void => {
    open().catch((error: unknown) => {
      if (!complained) log.warn('machine config server not started; retrying', { port, error: messageOf(error) });
      complained = true;
      if (!stopped) timer = clock.setTimer(RETRY_MS, tryOpen);
    });
  };
  tryOpen();
  return async () => {
    stopped = true;
    timer?.cancel();
    await close();
  };
}

function pairOf(text: string): { readonly cert: string; readonly key: string } {
  const [cert = '', key = ''] = decodeJson(list(string), text, 'certificate and key');
  return { cert, key };
}
