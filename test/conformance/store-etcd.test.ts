import { cluster } from '../store/cluster-harness.ts';
import {
  connect,
  DEBIAN_ETCD,
  isInstalled,
  makeCertificates,
  remove,
  startDebianEtcd,
  startHere,
  temporaryDirectory,
} from '../store/harness.ts';
import { storeConformance } from './store.ts';

const stops: Array<() => Promise<void>> = [];
const close = async (): Promise<void> => {
  for (const stop of stops.splice(0).reverse()) await stop();
};

async function prepared(): Promise<{ directory: string; certificates: Awaited<ReturnType<typeof makeCertificates>> }> {
  const directory = await temporaryDirectory();
  stops.push(() => remove(directory));
  return { directory, certificates: await makeCertificates(directory) };
}

storeConformance({
  name: 'hyperedge etcd',
  open: async () => {
    const { directory, certificates } = await prepared();
    const { endpoint, server } = await startHere(directory, certificates);
    stops.push(() => server.stop());
    return connect(endpoint, certificates);
  },
  close,
});

storeConformance({
  name: 'hyperedge etcd that keeps next to nothing in memory',
  open: async () => {
    const { directory, certificates } = await prepared();
    const { endpoint, server } = await startHere(directory, certificates, { cacheBytes: 64 });
    stops.push(() => server.stop());
    return connect(endpoint, certificates);
  },
  close,
});

storeConformance({
  name: 'three hyperedge etcds',
  open: async () => {
    const { directory } = await prepared();
    const members = await cluster(directory, 3);
    stops.push(async () => {
      await Promise.all(members.map((member) => member.stop()));
    });
    const [, second] = members;
    if (second === undefined) throw new Error('there are three');
    await Promise.all(members.map((member) => member.start()));
    return connect(second.endpoint, undefined);
  },
  close,
});

if (await isInstalled(DEBIAN_ETCD)) {
  storeConformance({
    name: "Debian's etcd",
    open: async () => {
      const { directory, certificates } = await prepared();
      const debian = await startDebianEtcd(directory, certificates);
      stops.push(() => debian.stop());
      return connect(debian.endpoint, certificates);
    },
    close,
  });
}
