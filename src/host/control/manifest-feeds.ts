/** Manifests from the submit API and, on hosts with credentials of the store, from the node's key in the store. */
import { storeRevision } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ManifestFeed } from '../../kubelet/port.ts';
import { createEtcdStore } from '../../store/client/etcd-store.ts';
import type { Store } from '../../store/port.ts';
import { readReferenced, readSecret } from '../config/files.ts';
import { readMasterConfig, resolveRelativeTo } from '../config/master-config.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process/process.ts';
import type { SubmittedPods } from './submitted-pods.ts';

const PREFIX = '/registry/hosts/';
const RETRY_MS = 5_000;

export function manifestFeeds(settings: Settings, submitted: SubmittedPods, log: Log): ManifestFeed[] {
  if (!settings.roles.has('master')) return [submitted.feed];
  const open = (): Promise<Store> => openStore(settings.paths.masterConfig, log);
  return [submitted.feed, storeFeed(`${PREFIX}${settings.nodeName}`, open, log)];
}

/**
 * Publishes the manifest in one key of the store and follows its changes. While the store does not answer, the last
 * manifest remains.
 */
export function storeFeed(key: string, open: () => Promise<Store>, log: Log): ManifestFeed {
  return {
    source: 'store',
    follow(listener) {
      let stopped = false;
      let store: Store | undefined;
      let timer: { cancel(): void } | undefined;
      const publish = (value: Uint8Array | undefined): void => {
        const content = value === undefined ? '' : Buffer.from(value).toString('utf8');
        if (!stopped) listener(content.trim() === '' ? [] : [{ origin: key, content }]);
      };
      const retry = (error: unknown): void => {
        if (stopped) return;
        log.v(2, 'manifest key of the store not read; retrying', { key, error: messageOf(error) });
        timer = clock.setTimer(RETRY_MS, () => void read());
      };
      const read = async (): Promise<void> => {
        try {
          store ??= await open();
          const { kv, revision } = await store.get(key);
          if (stopped) return await store.close();
          publish(kv?.value);
          store.watch(key, `${key}\0`, storeRevision(revision + 1), {
            events: (events) => {
              const last = events.at(-1);
              publish(last?.type === 'put' ? last.kv.value : undefined);
            },
            progress: () => {},
            closed: retry,
          });
        } catch (error) {
          retry(error);
        }
      };
      void read();
      return () => {
        stopped = true;
        timer?.cancel();
        void store?.close();
      };
    },
  };
}

/** Opens the store with the credentials of the API server. Throws CodedErrors that name the file and the field. */
async function openStore(file: string, log: Log): Promise<Store> {
  const { etcdClientInfo } = await readMasterConfig(file);
  const absolutePath = (path: string | undefined): string | undefined =>
    path === undefined ? undefined : resolveRelativeTo(file, path);
  const [ca, cert, key] = [etcdClientInfo.ca, etcdClientInfo.certFile, etcdClientInfo.keyFile].map(absolutePath);
  return createEtcdStore({
    endpoints: etcdClientInfo.urls,
    ...(ca === undefined ? {} : { ca: await readReferenced(ca, file) }),
    ...(cert === undefined ? {} : { cert: await readReferenced(cert, file) }),
    ...(key === undefined ? {} : { key: await readSecret(key, file) }),
    log,
    clock,
  });
}
