import { cluster } from '../store/cluster-harness.ts';
import { DEBIAN_ETCD, isInstalled, remove, startHere, temporaryDirectory } from '../store/harness.ts';
import { startPeerEtcd } from './etcd/peer.ts';
import { etcdConformance } from './etcd.ts';

etcdConformance({
  name: 'hyperedge etcd',
  start: async () => {
    const directory = await temporaryDirectory();
    const { endpoint, server } = await startHere(directory, undefined);
    return {
      endpoints: [endpoint],
      stop: async () => {
        await server.stop();
        await remove(directory);
      },
    };
  },
});

etcdConformance({
  name: 'three hyperedge etcds',
  start: async () => {
    const directory = await temporaryDirectory();
    const members = await cluster(directory, 3);
    await Promise.all(members.map((member) => member.start()));
    return {
      endpoints: members.map((member) => member.endpoint),
      stop: async () => {
        await Promise.all(members.map((member) => member.stop()));
        await remove(directory);
      },
    };
  },
});

if (await isInstalled(DEBIAN_ETCD)) {
  etcdConformance({
    name: "Debian's etcd",
    start: async () => {
      const directory = await temporaryDirectory();
      const peer = await startPeerEtcd(directory);
      return {
        endpoints: [peer.endpoint],
        stop: async () => {
          await peer.stop();
          await remove(directory);
        },
      };
    },
  });
}
