import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';

export const consoleCommand: Command = {
  name: 'console',
  usage: '',
  summary: 'print a link that opens the web console once, as a cluster administrator',
  description:
    'Run it as root on a master, and open the link within 60 seconds in the browser of any machine that reaches the\n' +
    'API server. The link logs in as kube:admin. If that user is missing, it is created without a known password.',
  flags: { root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['Open the console without a password', 'console']],
  run: async ({ flags, out }) => {
    const { createConsoleLink } = await import('../../../host/certificates/console-link.ts');
    const { url, seconds } = await createConsoleLink(stringFlag(flags, 'root'));
    out.stdout(`${url}\n`);
    out.stderr(`The link can be used once, within ${seconds} s.\n`);
    return 0;
  },
};
