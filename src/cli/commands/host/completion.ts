import { type Command, UsageError } from '../../command.ts';
import { completionScript, SHELLS } from '../../completion/scripts.ts';

export const completionCommand: Command = {
  name: 'completion',
  usage: 'bash|zsh|fish',
  summary: 'print a script that completes commands, flags and names of objects',
  description:
    'Completes commands, flags, resource types, names, namespaces, containers, images, revisions, snapshots and rigs.\n' +
    'Names are read from the cluster and from this host; without access nothing is offered. The package of Debian\n' +
    'contains the scripts.',
  flags: {},
  arguments: [1, 1],
  values: [SHELLS],
  examples: [
    ['Completion in this bash', 'completion bash > /etc/bash_completion.d/hyperedge'],
    ['Completion in zsh', 'completion zsh > /usr/local/share/zsh/site-functions/_hyperedge'],
    ['Completion in fish', 'completion fish > ~/.config/fish/completions/hyperedge.fish'],
  ],
  run: async ({ positionals: [name = ''], out }) => {
    const shell = SHELLS.find((each) => each === name);
    if (shell === undefined) throw new UsageError(`completion ${name}: give ${SHELLS.join(', ')}`);
    out.stdout(completionScript(shell));
    return 0;
  },
};
