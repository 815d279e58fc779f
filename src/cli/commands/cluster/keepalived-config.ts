import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { CONFIG_FLAG } from './balancer-flags.ts';

export const keepalivedConfigCommand: Command = {
  name: 'keepalived-config',
  usage: '[--address ADDRESS] [--interface LINK]',
  summary: 'print a configuration of keepalived for a shared address of the masters',
  flags: {
    address: { type: 'string', value: 'ADDRESS', help: 'the shared address (default: vip.address)' },
    interface: { type: 'string', value: 'LINK', help: 'link of the shared address (default: vip.interface)' },
    config: CONFIG_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [['A shared address', 'keepalived-config --address 10.0.0.100 --interface eth0']],
  run: async ({ flags, out }) => {
    const { keepalivedConfig } = await import('../../../host/network/external-balancer.ts');
    const paths = { root: stringFlag(flags, 'root'), config: stringFlag(flags, 'config') };
    const given = { address: stringFlag(flags, 'address'), link: stringFlag(flags, 'interface') };
    out.stdout(await keepalivedConfig({ ...paths, ...given }));
    return 0;
  },
};
