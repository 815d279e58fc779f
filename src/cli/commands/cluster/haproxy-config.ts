import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { CONFIG_FLAG } from './balancer-flags.ts';

export const haproxyConfigCommand: Command = {
  name: 'haproxy-config',
  usage: '[--bind ADDRESS:PORT] [--masters HOST:PORT,…] [--routes]',
  summary: 'print an HAProxy configuration for the API servers or for the routes',
  description:
    'Without --masters, the configuration contains the API servers that this host has discovered. Check the file with haproxy -c -f FILE.',
  flags: {
    bind: { type: 'string', value: 'ADDRESS:PORT', help: 'where HAProxy listens (default *:6443)' },
    routes: {
      type: 'boolean',
      help: 'print the configuration for routes, ingresses and HTTP routes instead of the API servers',
    },
    certificates: {
      type: 'string',
      value: 'DIRECTORY',
      help: 'with --routes: PEM files of the certificates that HAProxy serves',
    },
    ca: {
      type: 'string',
      value: 'FILE',
      help: 'with --routes: CA file that verifies the servers of re-encrypting routes',
    },
    masters: { type: 'string', value: 'LIST', help: 'API servers, separated by commas' },
    config: CONFIG_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [
    ['API servers that this host has discovered', 'haproxy-config'],
    ['Routes with their certificates', 'haproxy-config --routes --certificates /etc/haproxy/certs'],
  ],
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
