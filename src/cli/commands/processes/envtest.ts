import { type Command, stringFlag, UsageError } from '../../command.ts';

export const envtestCommand: Command = {
  name: 'envtest',
  usage: '[--profile kubernetes|okd] [DIR]',
  summary: 'prepare a directory with etcd and kube-apiserver for controller-runtime’s envtest',
  description:
    'KUBEBUILDER_ASSETS=$(hyperedge envtest) go test ./… runs an operator’s tests on this executable.\nkubectl is linked too where it is installed. DIR is created if it does not exist (default: hyperedge/envtest in the user’s cache).',
  flags: {
    profile: {
      type: 'string',
      value: 'NAME',
      help: 'kubernetes: the API of kube-apiserver alone (default); okd: OpenShift’s kinds too',
    },
  },
  arguments: [0, 1],
  values: ['directory'],
  examples: [['Directory for KUBEBUILDER_ASSETS', 'envtest']],
  run: async ({ positionals, flags, out }) => {
    const { ENVTEST_PROFILES, prepareEnvtest } = await import('../../../host/apiserver/envtest.ts');
    const text = stringFlag(flags, 'profile') ?? 'kubernetes';
    const profile = ENVTEST_PROFILES.find((each) => each === text);
    if (profile === undefined)
      throw new UsageError(`--profile: "${text}" is not a profile; give one of ${ENVTEST_PROFILES.join(', ')}`);
    out.stdout(`${await prepareEnvtest(positionals[0], process.env, profile)}\n`);
    return 0;
  },
};
