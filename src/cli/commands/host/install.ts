import type { InstallOptions } from '../../../host/install/install.ts';
import { type Command, type FlagValues, integerFlag, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';

const DEFAULT_TIMEOUT_S = 180;

const DEFAULT_MASTERS = 3;

const MOST_MASTERS = 9;

export const installCommand: Command = {
  name: 'install',
  usage:
    '[--from BUNDLE] [--join URL --token TOKEN --ca-hash HASH | --offer URL --ca-hash HASH | --bootstrap] [--roles LIST] [--address IP] [--config FILE]',
  summary: 'install this executable as a service, start it and wait until the node is Ready',
  description:
    'Runs hyperedge doctor --preflight and stops on errors, unless --ignore names the check.\n' +
    'Copies itself to /usr/local/bin/hyperedge with its links, units and bundled programs, writes flags into\n' +
    '/etc/origin/bootstrap.yaml, enables and starts hyperedge.service. Run again, it changes nothing or upgrades\n' +
    'in place: pods keep running.',
  flags: {
    config: { type: 'string', value: 'FILE', help: 'bootstrap file to install as /etc/origin/bootstrap.yaml' },
    roles: { type: 'string', value: 'LIST', help: 'roles of this host, comma-separated: master,etcd,node' },
    address: {
      type: 'string',
      value: 'IP',
      help: 'address of this node (default: the address of the link with the default route)',
    },
    'node-name': { type: 'string', value: 'NAME', help: 'name of the Node object (default: the host name)' },
    join: { type: 'string', value: 'URL', help: 'API server of the cluster to join, such as https://10.0.0.1:8443' },
    token: { type: 'string', value: 'TOKEN', help: 'token of hyperedge token create' },
    'ca-hash': { type: 'string', value: 'HASH', help: 'hash of the cluster’s CA, printed with the token' },
    offer: {
      type: 'string',
      value: 'URL',
      help: 'API server of a cluster that this blank host offers itself to, until a Machine claims it',
    },
    bootstrap: { type: 'boolean', help: 'run a temporary control plane until the masters are ready' },
    masters: { type: 'string', value: 'NUMBER', help: 'with --bootstrap: masters to wait for (default 3)' },
    'bootstrap-wait': { type: 'boolean', help: 'install nothing; wait until this host may be unplugged' },
    'host-tools': { type: 'boolean', help: 'use this host’s runc, conmon, nft and ip instead of the bundled ones' },
    'from-mcs': {
      type: 'string',
      value: 'URL',
      help: 'machine config of the first start: https://MASTER:22623/config/POOL, or a file with the response',
    },
    from: {
      type: 'string',
      value: 'BUNDLE',
      help: 'offline bundle: its executable, images, manifests, join parameters',
    },
    key: { type: 'string', value: 'FILE', help: 'with --from: public key that must have signed the bundle' },
    ignore: {
      type: 'string',
      value: 'CHECK',
      values: 'check',
      multiple: true,
      help: 'continue despite this failed check of hyperedge doctor --preflight; may be repeated',
    },
    'no-start': { type: 'boolean', help: 'put the files in place and start nothing; implied by --root' },
    timeout: { type: 'string', value: 'SECONDS', help: `how long to wait for Ready (default ${DEFAULT_TIMEOUT_S})` },
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [
    ['A cluster of one host', 'install'],
    [
      'Join a cluster with the command that token create prints',
      'install --join https://10.0.0.1:8443 --token TOKEN --ca-hash HASH',
    ],
    ['Install without a network from an offline bundle', 'install --from site.bundle --key release.pub'],
  ],
  run: async ({ flags, out, progress }) => {
    const timeoutMs = (integerFlag(flags, 'timeout', 1, 86_400) ?? DEFAULT_TIMEOUT_S) * 1000;
    if (flags['bootstrap-wait'] === true) {
      const { waitForHandover } = await import('../../../host/install/bootstrap-wait.ts');
      return waitForHandover({ root: stringFlag(flags, 'root'), timeoutMs, write: out.stdout });
    }
    const ways = waysOf(flags);
    const [from, key] = [stringFlag(flags, 'from'), stringFlag(flags, 'key')];
    if (key !== undefined && from === undefined) throw new UsageError('--key: requires --from');
    const options = {
      root: stringFlag(flags, 'root'),
      config: stringFlag(flags, 'config'),
      roles: stringFlag(flags, 'roles')
        ?.split(',')
        .map((role) => role.trim()),
      address: stringFlag(flags, 'address'),
      nodeName: stringFlag(flags, 'node-name'),
      hostTools: flags['host-tools'] === true,
      ...ways,
      fromMcs: stringFlag(flags, 'from-mcs'),
      start: flags['no-start'] !== true,
      ignore: Array.isArray(flags['ignore']) ? flags['ignore'].map(String) : [],
      timeoutMs,
      write: out.stdout,
      quiet: flags['quiet'] === true,
    };
    if (from === undefined) return (await import('../../../host/install/install.ts')).install(options);
    const { installFrom } = await import('../../../host/install/offline-install.ts');
    return installFrom({ ...options, from, key, progress, argv: process.argv.slice(2) });
  },
};

/**
 * Options that select how the host gets a cluster: it joins with a token, offers itself to a cluster, or is the
 * temporary master of a new cluster. A standalone host has none of them.
 */
function waysOf(flags: FlagValues): Pick<InstallOptions, 'join' | 'offer' | 'handover'> {
  const value = (name: string): string | undefined => stringFlag(flags, name)?.replace(/\/+$/, '');
  const [server, token, caHash, offer] = [value('join'), value('token'), value('ca-hash'), value('offer')];
  const masters = integerFlag(flags, 'masters', 1, MOST_MASTERS);
  const bootstrap = flags['bootstrap'] === true;
  const none = { join: undefined, offer: undefined, handover: undefined };
  if (masters !== undefined && !bootstrap) throw new UsageError('--masters: requires --bootstrap');
  if (bootstrap) {
    if ([server, token, caHash, offer].some((each) => each !== undefined))
      throw new UsageError('--bootstrap: creates a new cluster; omit --join, --offer, --token and --ca-hash');
    return { ...none, handover: { masters: masters ?? DEFAULT_MASTERS } };
  }
  if (offer !== undefined) {
    if (server !== undefined || token !== undefined || caHash === undefined)
      throw new UsageError('give --offer and --ca-hash together, without --join and --token');
    return { ...none, offer: { server: offer, caHash } };
  }
  if (server === undefined && token === undefined && caHash === undefined) return none;
  if (server === undefined || token === undefined || caHash === undefined)
    throw new UsageError('give --join, --token and --ca-hash together, as hyperedge token create prints them');
  return { ...none, join: { server, token, caHash } };
}
