/** `hyperedge etcd`: etcd's API on SQLite. */
import { mkdir } from 'node:fs/promises';
import { CodedError, messageOf } from '../base/errors.ts';
import { createEtcdServer, createTokens } from '../components/etcd/index.ts';
import { createRpcListener } from '../io/grpc/index.ts';
import { createSqliteLog } from '../io/sqlite/index.ts';
import { openAssets } from './assets.ts';
import { readEtcdConfig } from './config/etcd-config.ts';
import { resolveBeside } from './config/master-config.ts';
import type { Component, ComponentOptions } from './controllers.ts';
import { readReferenced, readSecret } from './files.ts';
import { systemClock as clock } from './process.ts';

/** Throws CodedErrors that name file, address or data directory. */
export async function startEtcd({
  configFile,
  log,
  onFatal,
}: ComponentOptions & { readonly onFatal: (error: Error) => void }): Promise<Component> {
  const config = await readEtcdConfig(configFile);
  const assets = await openAssets();
  const security = config['client-transport-security'];
  const [cert, key, ca] = await Promise.all([
    readReferenced(resolveBeside(configFile, security['cert-file']), configFile),
    readSecret(resolveBeside(configFile, security['key-file']), configFile),
    readReferenced(resolveBeside(configFile, security['trusted-ca-file']), configFile),
  ]);
  const tokens = await createTokens(config['auth-token'] ?? 'simple', clock, (path, kind) =>
    (kind === 'private' ? readSecret : readReferenced)(resolveBeside(configFile, path), configFile),
  );
  const listen = new URL(config['listen-client-urls']);
  const directory = resolveBeside(configFile, config['data-dir']);
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new CodedError('unwritable', `${configFile}: data-dir: ${messageOf(error)}`, { cause: error });
  }
  const server = createEtcdServer({
    revisions: createSqliteLog({ directory, nativeBinding: assets.sqliteAddon, log: log.named('sqlite') }),
    listener: createRpcListener({
      host: listen.hostname.replaceAll(/[[\]]/g, ''),
      port: Number(listen.port === '' ? 443 : listen.port),
      tls: { cert, key, ca },
      log,
    }),
    clock,
    log,
    name: config.name,
    clientUrls: [config['advertise-client-urls']],
    ...(config['initial-advertise-peer-urls'] === undefined
      ? {}
      : { peerUrls: [config['initial-advertise-peer-urls']] }),
    tokens,
    clientCertAuth: security['client-cert-auth'] ?? false,
    onFatal,
  });
  const { host, port } = await server.start();
  log.info('serving', { address: host, port });
  return { stop: () => server.stop() };
}
