import type { RigAccess, RigTarget } from '../../../host/commands/rigs.ts';
import { type Command, type Flag, type FlagValues, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';
import { checkFormat, OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

const NONE = '<none>';
const ACCESS: Readonly<Record<string, Flag>> = {
  kubeconfig: { type: 'string', value: 'FILE', help: 'credentials (default KUBECONFIG, then those of this host)' },
  root: ROOT_FLAG,
};
const NAMESPACE: Flag = { type: 'string', short: 'n', value: 'NAME', help: 'namespace of the claim (default default)' };
const RIG: Flag = { type: 'boolean', help: 'the name is of a rig: for administrators' };

const accessOf = (flags: FlagValues): RigAccess => ({
  kubeconfig: stringFlag(flags, 'kubeconfig'),
  root: stringFlag(flags, 'root'),
});
const namespaceOf = (flags: FlagValues): string => stringFlag(flags, 'namespace') ?? 'default';
const targetOf = (flags: FlagValues, name = ''): RigTarget => ({
  ...{ name, namespace: namespaceOf(flags) },
  isRig: flags['rig'] === true,
});

export const listCommand: Command = {
  usage: 'rig list [-o json|yaml]',
  summary: 'Lists the rigs with their holders and queues.',
  flags: { output: OUTPUT_FLAG, ...ACCESS },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    checkFormat(flags);
    const { listRigs } = await import('../../../host/commands/rigs.ts');
    const rigs = await listRigs(accessOf(flags));
    const rows = rigs.map(({ metadata, spec, status }) => [
      metadata?.name ?? '',
      status?.node ?? spec?.node ?? NONE,
      status?.holder === undefined ? NONE : `${status.holder.namespace}/${status.holder.name}`,
      String(status?.queue ?? 0),
      status?.expiresAt ?? NONE,
    ]);
    out.stdout((await printDocument(flags, rigs)) ?? printTable(['NAME', 'NODE', 'HOLDER', 'QUEUE', 'EXPIRES'], rows));
    return 0;
  },
};

export const claimCommand: Command = {
  usage: 'rig claim RIG [--name NAME] [-n NAMESPACE] [--duration D] [--wait]',
  summary: 'Claims a rig: creates a RigClaim.',
  description: 'Instead of RIG, --selector names labels of rigs, any of which will do.',
  flags: {
    name: { type: 'string', value: 'NAME', help: 'name of the claim (default: generated)' },
    namespace: NAMESPACE,
    selector: { type: 'string', short: 'l', value: 'K=V,…', help: 'labels of rigs, instead of a name' },
    duration: { type: 'string', value: 'D', help: 'length of the lease, such as 30m' },
    wait: { type: 'boolean', help: 'wait until the rig is granted' },
    ...ACCESS,
  },
  arguments: [0, 1],
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
    out.stdout(`rigclaim ${claim.metadata?.name ?? ''} ${phase}${until}\n`);
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

export const releaseCommand: Command = {
  usage: 'rig release CLAIM [-n NAMESPACE]',
  summary: 'Releases a claim: its pods end, and the next claim has the rig.',
  flags: { namespace: NAMESPACE, ...ACCESS },
  arguments: [1, 1],
  run: async ({ flags, positionals: [name = ''], out }) => {
    const { releaseRig } = await import('../../../host/commands/rigs.ts');
    if (await releaseRig(accessOf(flags), name, namespaceOf(flags))) {
      out.stdout(`rigclaim ${name} released\n`);
      return 0;
    }
    out.stderr(`hyperedge: rigclaim "${name}" not found in namespace "${namespaceOf(flags)}"\n`);
    return 1;
  },
};

export const consoleCommand: Command = {
  usage: 'rig console CLAIM [-n NAMESPACE] [--rig]',
  summary: 'Opens the serial console of the rig that a claim has; Ctrl-] closes it.',
  description: 'The node records what the board sends below /var/log/origin/rigs/<rig>.',
  flags: { namespace: NAMESPACE, rig: RIG, ...ACCESS },
  arguments: [1, 1],
  run: async ({ flags, positionals: [name = ''] }) => {
    const { openConsole } = await import('../../../host/commands/rigs.ts');
    await openConsole(accessOf(flags), targetOf(flags, name));
    return 0;
  },
};

export const powerCommand: Command = {
  usage: 'rig power on|off|cycle CLAIM [-n NAMESPACE] [--rig]',
  summary: 'Switches the board of the rig that a claim has.',
  flags: { namespace: NAMESPACE, rig: RIG, ...ACCESS },
  arguments: [2, 2],
  run: async ({ flags, positionals: [action, name = ''], out }) => {
    if (action !== 'on' && action !== 'off' && action !== 'cycle')
      throw new UsageError(`rig power ${action ?? ''}: give on, off or cycle before the name of the claim`);
    const { switchRig } = await import('../../../host/commands/rigs.ts');
    const output = await switchRig(accessOf(flags), targetOf(flags, name), action);
    out.stdout(output === '' ? `${name} switched ${action}\n` : `${output}\n`);
    return 0;
  },
};
