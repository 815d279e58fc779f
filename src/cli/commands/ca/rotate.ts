import { type Command, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';

/**
 * Phases of a rotation. They repeat the values in src/pki/rotation.ts and src/host/certificates/rotate-authorities.ts,
 * which are loaded only when the command runs.
 */
const PHASES = ['new-ca', 'reissue', 'finish'] as const;

const SIGNERS = ['cluster', 'etcd', 'front-proxy', 'service-accounts'] as const;

const NEXT = {
  'new-ca':
    'The new authorities are trusted in addition to the current ones. When every host has received them (a minute), run: hyperedge ca rotate --phase reissue',
  reissue:
    'The new authorities sign certificates; both generations are trusted. When every host has renewed its certificates (a minute) and every client its kubeconfig, run: hyperedge ca rotate --phase finish',
  finish: 'The previous authorities are no longer trusted.',
} as const;

function oneOf<T extends string>(flag: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((each) => each === text);
  if (found === undefined) throw new UsageError(`--${flag}=${text}: give ${allowed.join(', ')}`);
  return found;
}

export const caRotateCommand: Command = {
  name: 'ca rotate',
  usage: '--phase new-ca|reissue|finish [--signer SIGNER] [-o json|yaml]',
  summary: 'rotate the cluster’s authorities and service account keys, one phase at a time',
  description:
    'Run the phases in order on one master. Certificates and tokens of both generations are accepted until the last\n' +
    'phase; components reload their files without a restart of pods or connections. Other masters\n' +
    'receive the keys within 20 s; a phase is rejected while one of them does not have the keys of the last phase.',
  flags: {
    phase: { type: 'string', value: 'PHASE', help: `${PHASES.join(', ')}` },
    signer: { type: 'string', value: 'SIGNER', help: `${SIGNERS.join(', ')} (default all)` },
    force: {
      type: 'boolean',
      help: 'continue although a master has not received the last phase; that master must reset and join again',
    },
    output: OUTPUT_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [
    ['First phase of all authorities', 'ca rotate --phase new-ca'],
    ['Second phase', 'ca rotate --phase reissue'],
    ['Last phase', 'ca rotate --phase finish'],
  ],
  run: async ({ flags, out, progress }) => {
    const text = stringFlag(flags, 'phase');
    if (text === undefined) throw new UsageError(`--phase is missing: give ${PHASES.join(', ')}, in this order`);
    const phase = oneOf('phase', text, PHASES);
    const signer = stringFlag(flags, 'signer');
    const signers = signer === undefined ? SIGNERS : [oneOf('signer', signer, SIGNERS)];
    const { rotateAuthorities } = await import('../../../host/certificates/rotate-authorities.ts');
    const { issued, wasInProgress } = await rotateAuthorities(
      stringFlag(flags, 'root'),
      phase,
      signers,
      flags['force'] === true,
      progress.step,
    );
    if (!wasInProgress) {
      out.stderr('hyperedge: ca rotate: no rotation is in progress; begin with hyperedge ca rotate --phase new-ca\n');
      return 1;
    }
    const document = await printDocument(flags, { phase, signers, issued, next: NEXT[phase] });
    out.stdout(document ?? `${issued.length} certificates issued\n${NEXT[phase]}\n`);
    return 0;
  },
};
