/**
 * A client from a kubeconfig. It reloads the credentials when the kubeconfig or a file that it references is replaced.
 */

import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import { CodedError, messageOf } from '../../base/errors.ts';
import { secretFileProblem } from '../../base/files/secret-file.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import {
  type ClientCredentials,
  createApiClient,
  createInformerFactory,
  type FenceableClient,
  type InformerFactory,
  type LastKnown,
  type PemSource,
  parseKubeconfig,
} from '../../client/index.ts';
import { watchPath } from '../../kubelet/io/host-facts/index.ts';
import { readSecret } from '../config/files.ts';
import { resolveRelativeTo } from '../config/master-config.ts';

export interface ClientContext {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
}

export interface OpenedClient {
  readonly server: string;
  /** Authority in PEM format that the kubeconfig contained when it was opened. */
  readonly caPem: string | undefined;
  readonly client: FenceableClient;
  /** Returns the current credentials. */
  credentials(): ClientCredentials;
  /**
   * Creates informers. If `lastKnown` is given, informers with this option restore their objects after a restart of the
   * process.
   */
  newInformers(lastKnown?: LastKnown): InformerFactory;
  close(): Promise<void>;
}

/**
 * Opens a client. `server`: another API server of the same cluster, instead of the server in the kubeconfig. Throws
 * CodedErrors 'bad-config' and 'unreadable' with the file.
 */
export async function openClient(
  kubeconfig: string,
  userAgent: string,
  context: ClientContext,
  server?: string,
): Promise<OpenedClient> {
  if (!existsSync(kubeconfig))
    throw new CodedError(
      'unreadable',
      `${kubeconfig} does not exist; run the command on a master, with its --root if it has one`,
    );
  const text = await readSecret(kubeconfig, 'kubeconfig');
  let access: ReturnType<typeof parseKubeconfig>;
  try {
    access = parseKubeconfig(parse(text));
  } catch (error) {
    throw new CodedError('bad-config', `${kubeconfig}: ${messageOf(error)}`, { cause: error });
  }
  const credentials = followCredentials(kubeconfig, access, context.log);
  const client = createApiClient({
    server: server ?? access.server,
    userAgent,
    log: context.log.named('client'),
    clock: context.clock,
    credentials: credentials.current,
    ...(access.tlsServerName === undefined ? {} : { tlsServerName: access.tlsServerName }),
  });
  return {
    server: access.server,
    caPem: credentials.current().ca,
    client,
    credentials: credentials.current,
    newInformers: (lastKnown) =>
      createInformerFactory({
        client,
        lastKnown,
        log: context.log,
        clock: context.clock,
        random: context.random,
      }),
    close: async () => {
      credentials.stop();
      await client.close();
    },
  };
}

/**
 * Reads the kubeconfig and its PEM files now and whenever their directories change. `current` reads no file. A changed
 * server URL is ignored.
 */
function followCredentials(
  kubeconfig: string,
  first: ReturnType<typeof parseKubeconfig>,
  log: Log,
): { current: () => ClientCredentials; stop: () => void } {
  const text = (source: PemSource): string =>
    'data' in source ? source.data : readFileSync(resolveRelativeTo(kubeconfig, source.file), 'utf8');
  const secret = (source: PemSource): string => {
    const path = 'file' in source ? resolveRelativeTo(kubeconfig, source.file) : undefined;
    const problem = path === undefined ? undefined : secretFileProblem(path, statSync(path), process.geteuid?.() ?? 0);
    if (problem !== undefined) throw new CodedError('bad-config', `${kubeconfig}: ${problem}`);
    return text(source);
  };
  const load = (access: ReturnType<typeof parseKubeconfig>): ClientCredentials => ({
    ...(access.ca === undefined ? {} : { ca: text(access.ca) }),
    ...(access.cert === undefined ? {} : { cert: text(access.cert) }),
    ...(access.key === undefined ? {} : { key: secret(access.key) }),
    ...(access.token === undefined ? {} : { token: access.token }),
  });
  let current = load(first);
  const reload = (): void => {
    try {
      const next = load(parseKubeconfig(parse(readFileSync(kubeconfig, 'utf8'))));
      if (isDeepStrictEqual(next, current)) return;
      current = next;
      log.info('client certificate reloaded', { kubeconfig });
    } catch (error) {
      log.warn('client certificate not reloaded; using the previous one', { kubeconfig, error: messageOf(error) });
    }
  };
  const files = [first.ca, first.cert, first.key].flatMap((source) =>
    source !== undefined && 'file' in source ? [resolveRelativeTo(kubeconfig, source.file)] : [],
  );
  const watched = Map.groupBy([kubeconfig, ...files], (path) => dirname(path));
  const watchers = [...watched].map(([directory, paths]) => {
    const names = new Set(paths.map((path) => basename(path)));
    return watchPath(directory, (name) => {
      if (name === undefined || names.has(name)) reload();
    });
  });
  return {
    current: () => current,
    stop: () => {
      for (const watcher of watchers) watcher.close();
    },
  };
}
