import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';

export const kubeadminCreateCommand: Command = {
  name: 'kubeadmin create',
  usage: '[-o json|yaml]',
  summary: 'create the user kubeadmin, a cluster administrator, and print its password',
  description:
    'Run it on a master. Another run replaces the password and ends its tokens. Delete the secret kubeadmin in\n' +
    'kube-system once an identity provider and another administrator exist.',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['Create the user, or replace its password', 'kubeadmin create']],
  run: async ({ flags, out }) => {
    const { createKubeadmin } = await import('../../../host/certificates/kubeadmin.ts');
    const { password } = await createKubeadmin(stringFlag(flags, 'root'));
    out.stdout((await printDocument(flags, { user: 'kubeadmin', password })) ?? `${password}\n`);
    return 0;
  },
};
