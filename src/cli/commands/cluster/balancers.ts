import { type Command, type Flag, ROOT_FLAG, stringFlag } from '../../command.ts';

const CONFIG_FLAG: Flag = {
  type: 'string',
  value: 'FILE',
  help: 'bootstrap file (default /etc/origin/bootstrap.yaml)',
};

export const haproxyConfigCommand: Command = {
  usage: 'haproxy-config [--bind ADDRESS:PORT] [--masters HOST:PORT,…] [--routes]',
  summary: 'Prints a configuration of HAProxy before the API servers, or of the routes.',
  description: 'Without --masters: the API servers that this host knows. Check the file with haproxy -c -f FILE.',
  flags: {
    bind: { type: 'string', value: 'ADDRESS:PORT', help: 'where HAProxy listens (default *:6443)' },
    routes: { type: 'boolean', help: 'of routes, ingresses and HTTP routes, instead of the API servers' },
    certificates: { type: 'string', value: 'DIRECTORY', help: 'with --routes: PEM files that HAProxy ends TLS with' },
    ca: { type: 'string', value: 'FILE', help: 'with --routes: what re-encrypted connections are verified by' },
    masters: { type: 'string', value: 'LIST', help: 'API servers, separated by commas' },
    config: CONFIG_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    if (flags['routes'] === true) {
      const { routeConfig } = await import('../../../host/network/route-config.ts');
      const files = { certificates: stringFlag(flags, 'certificates'), ca: stringFlag(flags, 'ca') };
      out.stdout(await routeConfig({ ...files, root: stringFlag(flags, 'root'), config: stringFlag(flags, 'config') }));
      return 0;
    }
    const { haproxyConfig } = await import('../../../host/network/external-balancer.ts');
    const masters = (stringFlag(flags, 'masters') ?? '').split(',').filter((each) => each !== '');
    const options = { masters, bind: stringFlag(flags, 'bind') ?? '*:6443' };
    out.stdout(
      await haproxyConfig({ ...options, root: stringFlag(flags, 'root'), config: stringFlag(flags, 'config') }),
    );
    return 0;
  },
};

export const keepalivedConfigCommand: Command = {
  usage: 'keepalived-config [--address ADDRESS] [--interface LINK]',
  summary: 'Prints a configuration of keepalived for a shared address of the masters.',
  flags: {
    address: { type: 'string', value: 'ADDRESS', help: 'the shared address (default: vip.address)' },
    interface: { type: 'string', value: 'LINK', help: 'its link (default: vip.interface)' },
    config: CONFIG_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    const { keepalivedConfig } = await import('../../../host/network/external-balancer.ts');
    const paths = { root: stringFlag(flags, 'root'), config: stringFlag(flags, 'config') };
    const given = { address: stringFlag(flags, 'address'), link: stringFlag(flags, 'interface') };
    out.stdout(await keepalivedConfig({ ...paths, ...given }));
    return 0;
  },
};
