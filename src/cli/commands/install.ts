import { type Command, integerFlag, ROOT_FLAG, stringFlag, UsageError } from '../command.ts';

const DEFAULT_TIMEOUT_S = 180;

export const installCommand: Command = {
  usage: 'install [--join URL --token TOKEN --ca-hash HASH] [--roles LIST] [--address IP] [--config FILE]',
  summary: 'Installs this executable as a service, starts it and waits until the node is Ready.',
  description:
    'Copies itself to /usr/local/bin/hyperedge with its links, units and carried programs, writes flags into\n' +
    '/etc/origin/bootstrap.yaml, enables and starts hyperedge.service. Run again, it changes nothing or upgrades\n' +
    'in place: pods keep running.',
  flags: {
    config: { type: 'string', value: 'FILE', help: 'bootstrap file to install as /etc/origin/bootstrap.yaml' },
    roles: { type: 'string', value: 'LIST', help: 'roles of this host, comma-separated: master,etcd,node' },
    address: { type: 'string', value: 'IP', help: 'address of this node (default: of the default route’s link)' },
    'node-name': { type: 'string', value: 'NAME', help: 'name of the Node object (default: the host name)' },
    join: { type: 'string', value: 'URL', help: 'API server of the cluster to join, such as https://10.0.0.1:8443' },
    token: { type: 'string', value: 'TOKEN', help: 'token of hyperedge token create' },
    'ca-hash': { type: 'string', value: 'HASH', help: 'hash of the cluster’s CA, printed with the token' },
    'host-tools': { type: 'boolean', help: 'use this host’s runc, conmon, nft and ip instead of the carried ones' },
    'from-mcs': {
      type: 'string',
      value: 'FILE',
      help: 'first config of this host: the answer of a machine config server',
    },
    'no-start': { type: 'boolean', help: 'put the files in place and start nothing; implied by --root' },
    timeout: { type: 'string', value: 'SECONDS', help: `how long to wait for Ready (default ${DEFAULT_TIMEOUT_S})` },
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    const [server, token, caHash] = ['join', 'token', 'ca-hash'].map((name) => stringFlag(flags, name));
    const given = [server, token, caHash].filter((value) => value !== undefined).length;
    if (given !== 0 && given !== 3) {
      throw new UsageError('give --join, --token and --ca-hash together, as hyperedge token create prints them');
    }
    const { install } = await import('../../roles/setup/install.ts');
    return install({
      root: stringFlag(flags, 'root'),
      config: stringFlag(flags, 'config'),
      roles: stringFlag(flags, 'roles')
        ?.split(',')
        .map((role) => role.trim()),
      address: stringFlag(flags, 'address'),
      nodeName: stringFlag(flags, 'node-name'),
      hostTools: flags['host-tools'] === true,
      join:
        server === undefined || token === undefined || caHash === undefined
          ? undefined
          : { server: server.replace(/\/+$/, ''), token, caHash },
      fromMcs: stringFlag(flags, 'from-mcs'),
      start: flags['no-start'] !== true,
      timeoutMs: (integerFlag(flags, 'timeout', 1, 86_400) ?? DEFAULT_TIMEOUT_S) * 1000,
      write: out.stdout,
    });
  },
};
