import type { RecoveryPlan, Survivor } from '../../../host/store/recover.ts';
import { type Command, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';
import { keepAliveDuring, STORE_FLAGS, storeAccessOptions } from '../../store-flags.ts';

export const membersRecoverCommand: Command = {
  name: 'members recover',
  usage: '[--dry-run] [--force] [--data-dir DIR]',
  summary: 'restart the store’s cluster from one member after a permanent quorum loss',
  description: `Makes this member a single-member cluster with its data. Run it on the survivor with the most advanced log: --dry-run
shows the logs and the lost revisions and changes nothing. The other members must be added again with empty data
directories. See docs/runbooks/quorum-loss.md.`,
  flags: {
    'dry-run': { type: 'boolean', help: 'show the members and the result, change nothing' },
    force: { type: 'boolean', help: 'recover although the plan reports an objection' },
    'data-dir': { type: 'string', value: 'DIR', help: 'data directory of a stopped store that is not this host’s' },
    output: OUTPUT_FLAG,
    ...STORE_FLAGS,
  },
  arguments: [0, 0],
  examples: [
    ['Show the members and what would be lost', 'members recover --dry-run'],
    ['Recover from this member', 'members recover'],
  ],
  run: async ({ flags, out }) => {
    const { planMemberRecovery, recoverMember } = await import('../../../host/store/recover.ts');
    const options = {
      ...storeAccessOptions(flags),
      dataDir: stringFlag(flags, 'data-dir'),
    };
    const plan = await keepAliveDuring(planMemberRecovery(options));
    const dry = flags['dry-run'] === true;
    out.stdout((await printDocument(flags, plan)) ?? shown(plan));
    if (plan.objection !== undefined && flags['force'] !== true) {
      out.stderr(`hyperedge: ${plan.objection}${dry ? '' : '; --force overrides'}\n`);
      return 1;
    }
    if (dry) return 0;
    await keepAliveDuring(recoverMember(plan, options));
    if (flags['output'] === undefined || flags['output'] === 'wide') out.stdout(afterwards(plan));
    return 0;
  },
};

function shown(plan: RecoveryPlan): string {
  const known = (value: number | undefined): string => (value === undefined ? '-' : String(value));
  const rows = plan.members.map(({ name, id, state, end }) => [
    name === '' ? '-' : name,
    id,
    state === 'here' ? `this member, ${plan.running ? 'running' : 'stopped'}` : state,
    known(end?.lastTerm),
    known(end?.lastIndex),
    known(end?.commit),
    known(end?.lastRevision),
  ]);
  const { unsure, lost, self } = plan;
  const lines = [
    printTable(['NAME', 'ID', 'STATE', 'LAST TERM', 'LAST INDEX', 'COMMITTED', 'LAST REVISION'], rows),
    unsure === undefined
      ? ''
      : `revisions ${unsure.from} to ${unsure.to} are not known to be committed and may have been acknowledged; they are kept\n`,
    lost === undefined
      ? ''
      : `revisions ${lost.from} to ${lost.to} are in the log of ${titleOf(plan.best)} and not in the log of this member: they will be lost\n`,
    `revisions after ${self.end?.lastRevision ?? 0} that only unreachable members have are lost\n`,
    `the only member of the cluster will be ${titleOf(self)}\n`,
  ];
  return lines.join('');
}

const titleOf = ({ name, id }: Survivor): string => (name === '' ? id : name);

function afterwards({ members, dataDirectory, running }: RecoveryPlan): string {
  const first = running
    ? 'this member serves as a single-member cluster\n'
    : `${dataDirectory} is ready: start the store\n`;
  const others = members.filter(({ state }) => state !== 'here');
  if (others.length === 0) return first;
  return [
    first,
    'then, for each other member, one at a time: stop its store, empty its data directory, and run here:\n',
    ...others.map((other) => `  hyperedge members add ${titleOf(other)} ${other.peerUrls.join()}\n`),
    'and start it with the printed environment\n',
  ].join('');
}
