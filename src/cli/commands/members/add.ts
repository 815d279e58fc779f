import { type Command, UsageError } from '../../command.ts';
import { printDocument } from '../../printers.ts';
import { FLAGS, withStore } from './store-access.ts';

export const membersAddCommand: Command = {
  name: 'members add',
  usage: 'NAME PEER-URL[,…] [--learner]',
  summary: 'add a member to the store’s cluster, before its first start',
  description: 'Prints the environment of the new member’s first start, as etcdctl does.',
  flags: { learner: { type: 'boolean', help: 'add as non-voting learner, see members promote' }, ...FLAGS },
  arguments: [2, 2],
  examples: [['Add a learner', 'members add n4 https://10.0.0.4:2380 --learner']],
  run: async ({ flags, positionals, out }) => {
    const [name = '', urls = ''] = positionals;
    for (const url of urls.split(','))
      if (!/^https?:\/\/[^/]+:\d+$/.test(url))
        throw new UsageError(`members add: "${url}" is not a peer URL; give one such as https://10.0.0.2:2380`);
    return withStore(flags, async (admin) => {
      const { added, members } = await admin.addMember(urls.split(','), flags['learner'] === true);
      const all = [...members.filter(({ id }) => id !== added.id), { ...added, name }];
      const cluster = all.flatMap((each) =>
        each.peerUrls.map((url) => `${each.name === '' ? each.id : each.name}=${url}`),
      );
      const environment = {
        ETCD_NAME: name,
        ETCD_INITIAL_CLUSTER: cluster.join(),
        ETCD_INITIAL_ADVERTISE_PEER_URLS: urls,
        ETCD_INITIAL_CLUSTER_STATE: 'existing',
      };
      const document = await printDocument(flags, { ...added, name, environment });
      const lines = Object.entries(environment).map(([key, value]) => `${key}="${value}"\n`);
      out.stdout(
        document ?? `member ${added.id} added; start it with an empty data directory and:\n\n${lines.join('')}`,
      );
      return 0;
    });
  },
};
