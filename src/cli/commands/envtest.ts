import type { Command } from '../command.ts';

export const envtestCommand: Command = {
  usage: 'envtest [DIR]',
  summary: 'Prints a directory with etcd and kube-apiserver for controller-runtime’s envtest.',
  description:
    'KUBEBUILDER_ASSETS=$(hyperedge envtest) go test ./… runs an operator’s tests on this executable.\nkubectl is linked too where it is installed. DIR is made when it is missing (default: hyperedge/envtest in the user’s cache).',
  flags: {},
  arguments: [0, 1],
  run: async ({ positionals, out }) => {
    const { prepareEnvtest } = await import('../../roles/api/envtest.ts');
    out.stdout(`${await prepareEnvtest(positionals[0], process.env)}\n`);
    return 0;
  },
};
