/** Stores for the API server's tests: the memory store, or the one in HYPEREDGE_TEST_STORE. */
import type { Store } from '../../src/store/port.ts';
import { createMemoryStore, type MemoryStore } from '../conformance/memory-store.ts';
import { cluster } from '../store/cluster-harness.ts';
import { connect, makeCertificates, remove, startDebianEtcd, startHere, temporaryDirectory } from '../store/harness.ts';

export const OTHER_STORES = ['hyperedge etcd', 'three hyperedge etcds', "Debian's etcd"] as const;
export const STORE_VARIABLE = 'HYPEREDGE_TEST_STORE';

export interface TestStore {
  readonly store: Store & Partial<MemoryStore>;
  close(): Promise<void>;
}

export async function openStore(): Promise<TestStore> {
  const name = process.env[STORE_VARIABLE];
  if (name === undefined) {
    const store = createMemoryStore();
    return { store, close: () => store.close() };
  }
  const directory = await temporaryDirectory();
  const opened = await open(name, directory);
  return {
    store: opened.store,
    close: async () => {
      await opened.store.close();
      await opened.stop();
      await remove(directory);
    },
  };
}

async function open(name: string, directory: string): Promise<{ store: Store; stop(): Promise<void> }> {
  const [one, three, debian] = OTHER_STORES;
  if (name === one) {
    const { endpoint, server } = await startHere(directory, undefined);
    return { store: connect(endpoint, undefined), stop: () => server.stop() };
  }
  if (name === three) {
    const members = await cluster(directory, 3);
    await Promise.all(members.map((member) => member.start()));
    const store = connect(members[0]?.endpoint as string, undefined, {
      endpoints: members.map((member) => member.endpoint),
    });
    return {
      store,
      stop: async () => {
        await Promise.all(members.map((member) => member.stop()));
      },
    };
  }
  if (name !== debian) throw new Error(`${STORE_VARIABLE}: no store is called ${name}`);
  const certificates = await makeCertificates(directory);
  const { endpoint, stop } = await startDebianEtcd(directory, certificates);
  return { store: connect(endpoint, certificates), stop };
}
