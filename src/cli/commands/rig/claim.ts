import { type Command, stringFlag, UsageError } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { ACCESS, accessOf, NAMESPACE, namespaceOf } from './rig-access.ts';

export const rigClaimCommand: Command = {
  name: 'rig claim',
  usage: 'RIG [--name NAME] [-n NAMESPACE] [--duration D] [--wait] [-o json|yaml]',
  summary: 'claim a rig: create a RigClaim',
  description: 'Instead of RIG, --selector gives labels. Any rig with these labels can be granted.',
  flags: {
    name: { type: 'string', value: 'NAME', help: 'name of the claim (default: generated)' },
    namespace: NAMESPACE,
    selector: { type: 'string', short: 'l', value: 'K=V,…', help: 'labels of rigs, instead of a name' },
    duration: { type: 'string', value: 'D', help: 'length of the lease, such as 30m' },
    wait: { type: 'boolean', help: 'wait until the rig is granted' },
    output: OUTPUT_FLAG,
    ...ACCESS,
  },
  arguments: [0, 1],
  values: ['rig'],
  examples: [
    ['Claim a rig for half an hour and wait for it', 'rig claim board-1 --duration 30m --wait'],
    ['Claim any rig with these labels', 'rig claim --selector board=imx8,site=lab --wait'],
  ],
  run: async ({ flags, positionals, out }) => {
    const [rig] = positionals;
    const selector = stringFlag(flags, 'selector');
    if ((rig === undefined) === (selector === undefined))
      throw new UsageError('rig claim: give either the name of a rig or --selector');
    const { claimRig } = await import('../../../host/commands/rigs.ts');
    const labels = selector === undefined ? undefined : labelsOf(selector);
    const request = { name: stringFlag(flags, 'name'), duration: stringFlag(flags, 'duration'), rig, labels };
    const claim = await claimRig(
      accessOf(flags),
      { ...request, namespace: namespaceOf(flags) },
      flags['wait'] === true,
    );
    const { phase = 'Queued', rig: granted, expiresAt } = claim.status ?? {};
    const until = expiresAt === undefined ? '' : ` (${granted ?? ''} until ${expiresAt})`;
    const line = `rigclaim ${claim.metadata?.name ?? ''} ${phase}${until}\n`;
    out.stdout((await printDocument(flags, claim)) ?? line);
    return 0;
  },
};

function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split(',').map((each) => {
      const [, key = '', value = ''] = /^([^=]+)=(.*)$/.exec(each) ?? [];
      if (key === '') throw new UsageError(`--selector=${text}: give labels such as board=x,site=y`);
      return [key, value];
    }),
  );
}
