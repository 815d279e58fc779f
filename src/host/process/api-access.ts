/** A client from a kubeconfig file, which follows replaced certificates in the file. */

import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import type { Clock, RandomSource } from '../../base/clock.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { secretFileProblem } from '../../base/secret-file.ts';
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
  /** PEM of the authority that the kubeconfig trusted when it was opened. */
  readonly caPem: string | undefined;
  readonly client: FenceableClient;
  /** Returns the current credentials. */
  credentials(): ClientCredentials;
  /** With `lastKnown`, informers that request it keep their state across restarts of the process. */
  newInformers(lastKnown?: LastKnown): InformerFactory;
  close(): Promise<void>;
}

/**
 * `server`: another API server of the same cluster than the one in the file. Throws CodedError 'bad-config' or
 * 'unreadable' with the file.
 */
export async function openClient(
  kubeconfig: string,
  userAgent: string,
  context: ClientContext,
  server?: string,
): Promise<OpenedClient> {
  if (!existsSync(kubeconfig))
    throw new CodedError('unreadable', `${kubeconfig} does not exist; masters have it, below their --root`);
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
        ...{ client, lastKnown },
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
 * Reads the kubeconfig and its PEM files once, and again when their directories change; `current` reads no file. Only
 * credentials are updated, not the server.
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
